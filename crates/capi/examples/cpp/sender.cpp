// Calls a receiver and sends numbered messages: sender ADDRESS PORT COUNT
//
//     c++ -std=c++17 sender.cpp -o sender $(pkg-config --cflags --libs srt)
#include <srt/srt.h>

#include <array>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;

static int checked(int result, const char* what)
{
    if (result == SRT_ERROR)
        throw std::runtime_error(std::string(what) + ": " + srt_getlasterror_str());
    return result;
}

static void send_messages(const std::string& host, int port, int count)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    const SRTSOCKET socket = checked(srt_create_socket(), "socket");
    const int32_t latency = 120; // ms
    checked(srt_setsockflag(socket, SRTO_LATENCY, &latency, sizeof latency), "latency");
    checked(srt_setsockflag(socket, SRTO_STREAMID, "example", 7), "stream ID");
    checked(srt_connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), "connect");
    for (int number = 0; number < count; number++) {
        std::array<char, 1316> message{};
        std::to_string(number).copy(message.data(), message.size() - 1);
        checked(srt_send(socket, message.data(), static_cast<int>(message.size())), "send");
        std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(1s); // A receiver that learns of the end drops what is not due.
    srt_close(socket);
}

int main(int, char** words)
try {
    srt_startup();
    send_messages(words[1], std::stoi(words[2]), std::stoi(words[3]));
    return srt_cleanup();
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
