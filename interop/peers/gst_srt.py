"""A GStreamer pipeline whose SRT element is looked at, which gst-launch-1.0 cannot do.

    gst_srt.py PIPELINE

The pipeline is written as for gst-launch-1.0, with an element named "srt". Prints "state: NAME" when
the pipeline's state changes, "added", "removed" and "rejected: STREAMID" when the element says so
of a caller, "connecting: STREAMID" when it asks whether to let a caller in (not one whose stream ID
has "eve" in it; the element asks only with authentication=true), and "error: TEXT" or "end", after
which it ends. It answers SIGUSR1 with "stats: ..." on one line. At SIGTERM it stops the pipeline,
says "stopped" and ends.
"""

import signal
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402


def say(text):
    print(text, flush=True)


def decide(_element, _address, stream_id):
    say(f"connecting: {stream_id}")
    return "eve" not in (stream_id or "")


def watch(element):
    element.connect("caller-added", lambda *_: say("added"))
    element.connect("caller-removed", lambda *_: say("removed"))
    element.connect("caller-rejected", lambda *a: say(f"rejected: {a[2]}"))
    element.connect("caller-connecting", decide)


def obey(element, loop):
    def show():
        say(f"stats: {element.get_property('stats').to_string()}")
        return GLib.SOURCE_CONTINUE

    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGUSR1, show)
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGTERM, loop.quit)


def on_message(_bus, message, loop, pipeline):
    if message.type == Gst.MessageType.ERROR:
        error, details = message.parse_error()
        say(f"error: {error.message} {details}".replace("\n", " "))
        loop.quit()
    elif message.type == Gst.MessageType.EOS:
        say("end")
        loop.quit()
    elif message.type == Gst.MessageType.WARNING:
        warning, details = message.parse_warning()
        say(f"warning: {warning.message} {details}".replace("\n", " "))
    elif message.type == Gst.MessageType.STATE_CHANGED and message.src == pipeline:
        say(f"state: {message.parse_state_changed()[1].value_nick}")


def main():
    Gst.init(None)
    pipeline = Gst.parse_launch(sys.argv[1])
    element = pipeline.get_by_name("srt")
    watch(element)
    loop = GLib.MainLoop()
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message", on_message, loop, pipeline)
    obey(element, loop)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    say("stopped")


main()
