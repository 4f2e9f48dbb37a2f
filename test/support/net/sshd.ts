/** A real sshd on loopback, with a host key of its own. Needs the package openssh-server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'
import { waitUntil } from '../waiting.ts'

const run = $({ quiet: true, verbose: false })

/** Makes a host key in a folder of its own; resolves to its path. */
export async function makeHostKey(folder: string, name: string): Promise<string> {
  const path = join(folder, name)
  await run`ssh-keygen -q -t ed25519 -N ${''} -f ${path}`
  return path
}

/** Starts it on 127.0.0.1 with that host key alone. */
export async function startSshd(key: string, port: number) {
  // It insists on this folder, however it is configured.
  await mkdir('/run/sshd', { recursive: true })
  const options = [`ListenAddress=127.0.0.1:${port}`, `HostKey=${key}`, 'PidFile=none']
  const words = ['-D', '-e', '-f', '/dev/null', ...options.flatMap((option) => ['-o', option])]
  const child = spawn('/usr/sbin/sshd', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  let said = ''
  child.stderr.on('data', (piece: Buffer) => void (said += piece.toString()))
  await waitUntil(
    async () => said.includes('Server listening'),
    () => said,
  )
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
