// Calls a receiver and sends numbered messages: Sender ADDRESS PORT COUNT
//
//     csc Sender.cs, or mcs Sender.cs, or in a project of .NET
using System;
using System.Net;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Sender
{
    // .NET looks for libsrt.so.
    [DllImport("srt")] static extern int srt_startup();
    [DllImport("srt")] static extern int srt_cleanup();
    [DllImport("srt")] static extern int srt_create_socket();
    [DllImport("srt")] static extern int srt_close(int socket);
    [DllImport("srt")] static extern int srt_connect(int socket, byte[] address, int length);
    [DllImport("srt")]
    static extern int srt_setsockflag(int socket, int option, byte[] value, int length);
    [DllImport("srt")] static extern int srt_send(int socket, byte[] message, int length);
    [DllImport("srt")] static extern IntPtr srt_getlasterror_str();

    const int Latency = 23, StreamId = 46; // SRTO_LATENCY, SRTO_STREAMID

    static int Checked(int result, string what)
    {
        if (result != -1) return result;
        throw new Exception(what + ": " + Marshal.PtrToStringAnsi(srt_getlasterror_str()));
    }

    // A struct sockaddr_in.
    static byte[] Address(string host, int port)
    {
        var address = new byte[16];
        BitConverter.GetBytes((ushort)2).CopyTo(address, 0);
        address[2] = (byte)(port >> 8);
        address[3] = (byte)port;
        IPAddress.Parse(host).GetAddressBytes().CopyTo(address, 4);
        return address;
    }

    static void Main(string[] words)
    {
        srt_startup();
        int socket = Checked(srt_create_socket(), "socket");
        Checked(srt_setsockflag(socket, Latency, BitConverter.GetBytes(120), 4), "latency"); // ms
        var name = Encoding.UTF8.GetBytes("example");
        Checked(srt_setsockflag(socket, StreamId, name, name.Length), "stream ID");
        Checked(srt_connect(socket, Address(words[0], int.Parse(words[1])), 16), "connect");
        for (int number = 0; number < int.Parse(words[2]); number++)
        {
            var message = new byte[1316];
            Encoding.ASCII.GetBytes(number.ToString()).CopyTo(message, 0);
            Checked(srt_send(socket, message, message.Length), "send");
            Thread.Sleep(1);
        }
        Thread.Sleep(1000); // A receiver that learns of the end drops messages that are not due.
        srt_close(socket);
        srt_cleanup();
    }
}
