package clisettings

// systemSettings is the file of this machine's.
const systemSettings = "/Library/Application Support/GeminiCli/settings.json"
