// Runs at the start of each session, without being asked and outside any sandbox. Standard output is JSON and nothing else.
const additionalContext = `This session started at ${new Date().toISOString()}.`;
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext } }));
