// Takes one call and counts the messages until the sender ends: Receiver PORT
//
//     csc Receiver.cs, or mcs Receiver.cs, or in a project of .NET
using System;
using System.Runtime.InteropServices;
using System.Text;

static class Receiver
{
    // .NET looks for libsrt.so.
    [DllImport("srt")] static extern int srt_startup();
    [DllImport("srt")] static extern int srt_cleanup();
    [DllImport("srt")] static extern int srt_create_socket();
    [DllImport("srt")] static extern int srt_bind(int socket, byte[] address, int length);
    [DllImport("srt")] static extern int srt_listen(int socket, int backlog);
    [DllImport("srt")] static extern int srt_accept(int socket, IntPtr address, IntPtr length);
    [DllImport("srt")]
    static extern int srt_getsockflag(int socket, int option, byte[] value, ref int length);
    [DllImport("srt")] static extern int srt_recv(int socket, byte[] message, int length);
    [DllImport("srt")] static extern int srt_getlasterror(IntPtr errno);
    [DllImport("srt")] static extern IntPtr srt_getlasterror_str();

    const int StreamId = 46, ConnectionLost = 2001; // SRTO_STREAMID, SRT_ECONNLOST

    static int Checked(int result, string what)
    {
        if (result != -1) return result;
        throw new Exception(what + ": " + Marshal.PtrToStringAnsi(srt_getlasterror_str()));
    }

    static void Main(string[] words)
    {
        int port = int.Parse(words[0]);
        var address = new byte[16]; // a struct sockaddr_in with the address 0.0.0.0
        BitConverter.GetBytes((ushort)2).CopyTo(address, 0);
        address[2] = (byte)(port >> 8);
        address[3] = (byte)port;

        srt_startup();
        int listener = Checked(srt_create_socket(), "socket");
        Checked(srt_bind(listener, address, address.Length), "bind");
        Checked(srt_listen(listener, 1), "listen");
        int socket = Checked(srt_accept(listener, IntPtr.Zero, IntPtr.Zero), "accept");
        byte[] name = new byte[513], message = new byte[1456];
        int nameLength = name.Length, length, received = 0, last = -1;
        Checked(srt_getsockflag(socket, StreamId, name, ref nameLength), "stream ID");
        for (; (length = srt_recv(socket, message, message.Length)) > 0; received++)
            last = int.Parse(Encoding.ASCII.GetString(message, 0, length).TrimEnd('\0'));
        if (srt_getlasterror(IntPtr.Zero) != ConnectionLost) Checked(-1, "receive");
        Console.WriteLine("{0}: received {1} messages, the last one was number {2}",
            Encoding.UTF8.GetString(name, 0, nameLength), received, last);
        srt_cleanup();
    }
}
