package clisettings

// systemSettings is the file of this machine's.
const systemSettings = `C:\ProgramData\gemini-cli\settings.json`
