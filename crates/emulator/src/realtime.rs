//! The priority of the threads that keep the links' times.

/// Asks the system to run this thread before ordinary threads whenever it has work: they may keep
/// it waiting for a time slice of milliseconds, and a link would not keep its times. Without the
/// right to ask (root or CAP_SYS_NICE on Linux) packets are a little later when the machine is
/// busy.
pub(crate) fn run_before_others() {
    #[cfg(unix)]
    {
        use thread_priority::{
            RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
            set_thread_priority_and_policy, thread_native_id,
        };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let thread = thread_native_id();
        match set_thread_priority_and_policy(thread, ThreadPriority::Min, policy) {
            Ok(()) => tracing::debug!("the emulator runs in real time"),
            Err(error) => tracing::debug!("the emulator has no real-time priority: {error}"),
        }
    }
}
