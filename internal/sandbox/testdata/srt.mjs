// Runs a command in Anthropic's sandbox-runtime for each line of input, and
// answers with its exit code. Arguments: the module's file, "hosts" or "none",
// the command line.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const [module, hosts, command] = process.argv.slice(2)
const { SandboxManager } = await import(module)
await SandboxManager.initialize({
  network: { allowedDomains: hosts === 'hosts' ? ['example.com'] : [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
})
console.log('ready')
for await (const _ of createInterface({ input: process.stdin })) {
  const wrapped = await SandboxManager.wrapWithSandbox(command)
  const child = spawn(wrapped, { shell: true, stdio: 'ignore' })
  const code = await new Promise((done) => child.on('exit', done))
  await new Promise((done) => process.stdout.write(`${code}\n`, done))
}
await SandboxManager.reset()
process.exit(0)
