package qwen

// systemSettings is the file of this machine's.
const systemSettings = `C:\ProgramData\qwen-code\settings.json`
