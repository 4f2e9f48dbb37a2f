/** A virtual machine in software emulation: its serial line, its monitor, and its end. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMonitor, type Monitor } from './qemu-monitor.ts'
import { createTranscript } from '../terminal/transcript.ts'

/** `pi3` is a whole board, whose firmware QEMU stands in for. */
export type Processor = 'x86_64' | 'aarch64' | 'pi3'

export interface QemuOptions {
  /** The arguments beside those that every machine here gets (see `COMMON` and `BOARD`). */
  readonly args: readonly string[]
  readonly megabytes?: number
  readonly cores?: number
  /** A PC when absent. */
  readonly processor?: Processor
  /** The network namespace that the machine lives in (`ip netns`); the host's own when absent. */
  readonly namespace?: string
}

export interface Qemu extends AsyncDisposable {
  /** The folder of this machine: the serial log and the sockets; removed unless a wait failed. */
  readonly folder: string
  /** The process id of QEMU. */
  readonly pid: number
  /**
   * The serial line from where the last wait stopped up to the end of the match. Rejects when
   * the machine ends before, or after so many seconds; the log is kept then and named.
   */
  waitFor(pattern: RegExp, seconds: number): Promise<string>
  /** Types on the serial line; Enter is `\r`. */
  send(keys: string): void
  readonly monitor: Monitor
  /** Keeps the serial log beyond the machine's end, and says where it is. */
  keepLog(): string
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
}

/** KVM is never tried: where its device exists but guests hang, detection costs the whole run. */
const COMMON = '-accel tcg,thread=multi -nodefaults -no-reboot -display none -serial stdio'
const BOARD: Readonly<Record<Processor, string>> = {
  x86_64: 'qemu-system-x86_64 -machine q35 -cpu max',
  aarch64: 'qemu-system-aarch64 -machine virt -cpu cortex-a72',
  // Its console is its second serial line.
  pi3: 'qemu-system-aarch64 -machine raspi3b -serial null',
}

/**
 * One core: with two, TCG has been seen to run code that the other had just changed (`int3` in the
 * kernel's own patches and in V8's), and on a host of two a boot takes no longer.
 *
 * Needs the package qemu-system-x86, or qemu-system-arm. The machine dies with us, however we end.
 */
export async function startQemu(options: QemuOptions): Promise<Qemu> {
  const { args, megabytes = 768, cores = 1, processor = 'x86_64', namespace } = options
  const folder = await mkdtemp(join(tmpdir(), 'flasher-qemu-'))
  const socket = join(folder, 'monitor')
  const qemu = [...`${BOARD[processor]} ${COMMON}`.split(' '), '-m', String(megabytes)]
  const more = ['-smp', String(cores), '-qmp', `unix:${socket},server=on,wait=off`, ...args]
  const within = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace]
  const mortal = ['setpriv', '--pdeathsig', 'KILL']
  const [program = '', ...words] = [...within, ...mortal, ...qemu, ...more]
  const child = spawn(program, words, {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const log = join(folder, 'serial.log')
  const file = createWriteStream(log)
  const transcript = createTranscript(`the serial log is ${log}`)
  for (const stream of [child.stdout, child.stderr]) {
    stream.pipe(file, { end: false })
    stream.on('data', (chunk: Buffer) => transcript.add(chunk))
  }
  child.stdin.on('error', () => {}) // a machine that has ended takes no keys: `ended` tells
  const ended = once(child, 'close').then(() => {
    transcript.close()
    file.end()
  })
  let isKept = false
  return {
    folder,
    pid: child.pid ?? 0,
    monitor: createMonitor(socket),
    ended,
    async waitFor(pattern, seconds) {
      const before = isKept
      isKept = true
      const text = await transcript.waitFor(pattern, seconds)
      isKept = before
      return text
    },
    keepLog() {
      isKept = true
      return log
    },
    send: (keys) => child.stdin.write(keys),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      if (!isKept) await rm(folder, { recursive: true, force: true })
    },
  }
}
