// Takes one call and counts the messages until the sender ends: receiver PORT
//
//     c++ -std=c++17 receiver.cpp -o receiver $(pkg-config --cflags --libs srt)
#include <srt/srt.h>

#include <array>
#include <iostream>
#include <stdexcept>
#include <string>

static int checked(int result, const char* what)
{
    if (result == SRT_ERROR)
        throw std::runtime_error(std::string(what) + ": " + srt_getlasterror_str());
    return result;
}

static void receive_messages(int port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    const SRTSOCKET listener = checked(srt_create_socket(), "socket");
    checked(srt_bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
    checked(srt_listen(listener, 1), "listen");
    const SRTSOCKET socket = checked(srt_accept(listener, nullptr, nullptr), "accept");
    std::array<char, 513> name{};
    int length = name.size();
    checked(srt_getsockflag(socket, SRTO_STREAMID, name.data(), &length), "stream ID");
    std::array<char, 1456> message{};
    int received = 0;
    int last = -1;
    for (; srt_recv(socket, message.data(), message.size()) > 0; received++)
        last = std::stoi(message.data());
    if (srt_getlasterror(nullptr) != SRT_ECONNLOST)
        checked(SRT_ERROR, "receive");
    std::cout << name.data() << ": received " << received
              << " messages, the last one was number " << last << '\n';
    srt_close(socket);
    srt_close(listener);
}

int main(int, char** words)
try {
    srt_startup();
    receive_messages(std::stoi(words[1]));
    return srt_cleanup();
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
