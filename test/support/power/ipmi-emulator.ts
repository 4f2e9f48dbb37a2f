/** Debian's ipmi_sim on loopback, with a chassis of files: what a BMC was asked for can be read there. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreeUdpPort, layBmc } from '#build/demo/bmc.ts'

export type IpmiEmulator = Awaited<ReturnType<typeof startIpmi>>

/** Where it runs: on this host, or in a namespace, where every port is free. */
interface IpmiPlace {
  spawn(argv: readonly string[]): ChildProcess
  readonly port: number
}

const hereOf = (port: number): IpmiPlace => ({
  port,
  spawn: ([program = '', ...words]) => spawn(program, words, { stdio: 'ignore' }),
})

/** Starts it on loopback; the user is `admin` with the password `s3cret`. */
export async function startIpmi(place?: IpmiPlace) {
  const { port, spawn: start } = place ?? hereOf(await findFreeUdpPort())
  const folder = await mkdtemp(join(tmpdir(), 'flasher-ipmi-'))
  const at = (name: string) => join(folder, name)
  const child = start(await layBmc({ folder, port, user: 'admin', password: 's3cret' }))
  const ended = once(child, 'exit')
  const write = (name: string, text: string) => writeFile(at(name), text)
  const read = (name: string) => readFile(at(name), 'utf8').catch(() => '')
  const reset = async () => {
    await rm(at('forgets'), { force: true })
    await write('is-power', '0\n')
    await write('is-boot', 'none\n')
    await write('log', '')
  }
  await reset()
  // It says nothing when it is ready, and a call before that waits for seconds.
  await sleep(500)
  return {
    address: `127.0.0.1:${port}`,
    port,
    reset,
    isOn: async () => (await read('is-power')).trim() === '1',
    turn: (on: boolean) => write('is-power', on ? '1\n' : '0\n'),
    boot: async () => (await read('is-boot')).trim(),
    forgetBoots: () => write('forgets', ''),
    log: () => read('log'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
