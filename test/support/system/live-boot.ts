/** A machine of the earlier line in its live system: booted by a real server's script, its disks are loop devices. */
import { EventEmitter } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { accept } from '#kit/foundation/result.ts'
import type { EarlierConsole } from '#flasher/order/order.ts'
import { serveEarlierConsole } from '#flasher/order/live.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'
import { createEarlierServer } from '../server/earlier-server.ts'
import { asJson, listen } from '../server/server.ts'

export const LIVE_MAC = '52:54:00:12:34:56'

interface LiveBootOptions {
  /** The machine's disks: loop devices. */
  readonly disks: readonly string[]
  readonly hasCijoe?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Called when the disks are looked at, and when the machine restarts. */
  readonly onLook?: () => Promise<unknown>
  readonly onRestart?: () => Promise<unknown>
}

export interface TuiCall {
  readonly argv: readonly string[]
  readonly reason: string | null
  readonly unsent?: string
}

/** A server with a machine that is to be flashed, and that machine. */
export async function createLiveLab() {
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-live-boot-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const server = undo.use(await createEarlierServer())
  const socket = undo.use(await listen(server))
  const ask = await server.operator()
  const held = undo.move()

  /** The kernel command line that the server's script has for the machine now. */
  async function readKernelArguments(): Promise<string> {
    const script = await (await fetch(`${socket.url}/pxe/${LIVE_MAC}`)).text()
    return /^kernel \S+ (.*) \|\|/m.exec(script)?.[1] ?? ''
  }

  return {
    server,
    url: socket.url,
    folder,
    async bind(body: object) {
      const answer = await ask(`/machines/${LIVE_MAC}`, asJson(body, 'PUT'))
      assert.is(answer.status, 200)
    },
    async keep(file: string, body: string) {
      const path = `/machines/${LIVE_MAC}/provision/${file}`
      assert.is((await ask(path, { method: 'PUT', body })).status, 204)
    },
    forgetMachine: () => ask(`/machines/${LIVE_MAC}`, { method: 'DELETE' }),
    readMachine: async () => (await ask(`/machines/${LIVE_MAC}`)).json(),
    readRuns: async () => (await (await ask(`/machines/${LIVE_MAC}/runs`)).json()).runs,
    readKernelArguments,
    /** Boots the machine; its consoles are started with `start`. */
    async boot(options: LiveBootOptions, kernelArguments?: string) {
      const { disks, hasCijoe = false, env = {}, onLook, onRestart } = options
      const at = await mkdtemp(join(folder, 'boot-'))
      const path = (name: string) => join(at, name)
      await Promise.all(['kmsg', 'console'].map((name) => writeFile(path(name), '')))
      await writeFile(path('cmdline'), kernelArguments ?? (await readKernelArguments()))
      await symlink('/dev/tty1', path('screen'))
      const ending = new AbortController()
      const asked: TuiCall[] = []
      const counts = { restarts: 0 }
      const screen = { text: '' }
      const shell = createShell({ env: process.env })
      const stdout = { write: (text: string) => void (screen.text += text) }
      const environment = {
        env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', ...env },
        stdin: Object.assign(new EventEmitter(), { resume() {}, pause() {} }),
        stdout,
        signal: ending.signal,
      }
      const console: EarlierConsole = {
        ...environment,
        stderr: stdout,
        isRoot: true,
        now: () => performance.now() / 1000,
        paths: {
          kernelArguments: path('cmdline'),
          terminal: path('screen'),
          kmsg: path('kmsg'),
          console: path('console'),
          status: path('status'),
          lock: path('driver'),
          driven: path('run/driven'),
        },
        services: {
          async listDisks() {
            await onLook?.()
            const found = await createDisks({ shell }).survey({ loops: true })
            return found.filter((disk) => disks.includes(disk.path))
          },
          hasCijoe: async () => hasCijoe,
          async reboot() {
            await onRestart?.()
            counts.restarts += 1
            return accept(null)
          },
        },
        async tui(argv, opening) {
          asked.push({ argv, ...opening })
          return 0
        },
      }
      return {
        /** The panes that were opened, and what they show. */
        asked,
        counts,
        screen: () => screen.text,
        stdin: console.stdin,
        stop: () => ending.abort(),
        readStatus: () => readFile(path('status'), 'utf8'),
        start: () => serveEarlierConsole(console),
      }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
