package manifest

// openFlags adds nothing: opening does not wait here.
const openFlags = 0
