package qwen

// systemSettings is the file of this machine's.
const systemSettings = "/Library/Application Support/QwenCode/settings.json"
