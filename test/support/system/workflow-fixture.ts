/** What `cijoe-online` needs around it: a program of cijoe's command line, workflows, and a machine that greets as SSH does. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** Notes how it was called and with what; the workflow itself is a shell script. */
const CIJOE = `#!/bin/sh
printf '%s\\n' "$@" > argv
cp "$3" config-copy
env > environment
[ "$1 $2" = "--monitor -c" ] || exit 64
exec sh "$4"
`

export async function createWorkflowFixture() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-workflow-'))
  await writeFile(join(dir, 'cijoe'), CIJOE, { mode: 0o755 })
  const ssh = await listen((socket) => socket.end('SSH-2.0-test\r\n'))
  return {
    dir,
    sshPort: ssh.port,
    env: {
      PATH: `${dir}:${process.env['PATH'] ?? ''}`,
      FLASHER_WORKFLOW_SSH_PORT: String(ssh.port),
    },
    /** Its path. */
    async workflow(script: string, name = 'smoke.yaml'): Promise<string> {
      await writeFile(join(dir, name), script)
      return join(dir, name)
    },
    async [Symbol.asyncDispose]() {
      ssh.server.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** On loopback, at a port that is free. */
export async function listen(
  onConnection: Parameters<typeof createServer>[1],
): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer({}, onConnection)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { server, port }
}

/** Looks again until it is there: what it waits for decides, not the time. */
export async function eventually<T>(look: () => Promise<T | null>, what: string): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await look()
    if (found !== null) return found
    await pause(50)
  }
  throw new Error(`it never came: ${what}`)
}
