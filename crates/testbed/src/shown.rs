/// A text that is printed if the thread panics while this exists: the seed and the plan of a random
/// session, so that it can be run again.
#[derive(Debug)]
pub struct ShownOnPanic(pub String);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}
