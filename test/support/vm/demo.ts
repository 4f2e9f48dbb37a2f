/** `pnpm demo` as a process, with everything that it keeps in a folder of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { openTrio } from './built-images.ts'

const CHECKOUT = join(import.meta.dirname, '../../..')

export interface DemoLine {
  readonly event: string
  readonly [key: string]: unknown
}

/** The live system lies in `dist/` then, where the demo looks. */
export async function layLiveSystem(): Promise<void> {
  const dist = join(CHECKOUT, 'dist')
  await mkdir(dist, { recursive: true })
  for (const path of Object.values(await openTrio())) {
    const to = join(dist, basename(path))
    if (to !== path) await copyFile(path, to)
  }
}

/** Emulated: where KVM is there but guests hang, only that is sure. */
export async function startDemo(...more: readonly string[]) {
  const cache = await mkdtemp(join(tmpdir(), 'flasher-demo-'))
  const argv = ['build/demo.ts', '--json', '--accel', 'tcg', ...more]
  const child = spawn(process.execPath, argv, {
    cwd: CHECKOUT,
    env: { ...process.env, XDG_CACHE_HOME: cache },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: DemoLine[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close')
  return {
    child,
    folder: join(cache, 'flasher/demo'),
    lines,
    said: () => `${lines.map((line) => JSON.stringify(line)).join('\n')}\n${stderr}`,
    async saw(name: string): Promise<DemoLine> {
      for (;;) {
        const found = lines.find(({ event }) => event === name)
        if (found !== undefined) return found
        if (child.exitCode !== null) throw new Error(`it ended without ${name}: ${stderr}`)
        await sleep(50)
      }
    },
    /** Resolves to the exit code; null: by a signal. */
    async ended(): Promise<number | null> {
      await ended
      return child.exitCode
    },
    /** Command lines of what runs for this demo, itself included. */
    processes: () => listProcesses(cache),
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      await ended
      await rm(cache, { recursive: true, force: true })
    },
  }
}

/**
 * Lists the command lines of all processes that have the folder among their arguments or in their
 * environment.
 */
async function listProcesses(folder: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const command = (await readProcess(pid, 'cmdline')).replaceAll('\0', ' ')
      const text = `${command}${await readProcess(pid, 'environ')}`
      return text.includes(folder) && command !== '' ? [`${pid}: ${command}`] : []
    }),
  )
  return found.flat()
}

/** Empty where the process has ended. */
const readProcess = (pid: string, name: string) =>
  readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
