/** A block device whose every request nbdkit answers, so that it fails, lies or stalls for real. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { $ } from 'zx'
import { createLoop, type Loop } from './loop.ts'

export interface FaultyDisk extends AsyncDisposable {
  readonly device: string
  /** `{}` of its scripts. */
  readonly folder: string
  /** The requests since the last call, in order; needs `log`. */
  takeRequests(): readonly DiskRequest[]
  /** Makes or removes the file `flag` in the disk's folder, which scripts and filters look at. */
  setFlag(isSet: boolean): void
  /** Waits until a script made the file `reached` in the disk's folder. */
  reached(): Promise<void>
  /** Makes every request fail from now on. */
  vanish(): void
}

export interface DiskRequest {
  readonly kind: 'Read' | 'Write' | 'Flush' | 'Trim' | 'Zero'
  readonly offset: number
  readonly bytes: number
}

export interface FaultyDiskOptions {
  /** nbdkit's filters, plugin and parameters; `{}` is the disk's folder. */
  readonly nbdkit: readonly string[]
  readonly log?: boolean
  readonly sectorBytes?: 512 | 4096
}

/** A disk in memory. */
export const inMemory = (megabytes: number): readonly string[] => ['memory', `${megabytes}M`]

/** A disk whose writes from an offset on wait as long as the flag is set. */
export const gated = (megabytes: number, from: number): readonly string[] =>
  scripted(megabytes, {
    pwrite: `while [ "$4" -ge ${from} ] && [ -e "{}/flag" ]; do sleep 0.05; done`,
  })

/**
 * A disk in a file, whose requests go through shell scripts: `$3` is the length and `$4` the offset
 * in bytes. A script is run first and may end the request; else it is done as usual.
 */
export function scripted(
  megabytes: number,
  scripts: Partial<Record<'pread' | 'pwrite' | 'flush' | 'trim' | 'zero', string>>,
): readonly string[] {
  const file = '"{}/data"'
  const zero = `fallocate --zero-range --offset "$4" --length "$3" ${file}`
  const usual = {
    pread: `dd if=${file} bs=1M skip="$4" count="$3" iflag=skip_bytes,count_bytes status=none`,
    pwrite: `dd of=${file} bs=1M seek="$4" oflag=seek_bytes conv=notrunc iflag=fullblock status=none`,
    flush: ':',
    trim: zero,
    zero,
  }
  const names = ['pread', 'pwrite', 'flush', 'trim', 'zero'] as const
  return [
    'eval',
    `get_size=truncate -s '>${megabytes}M' ${file}; echo ${megabytes}M`,
    ...['can_write', 'can_flush', 'can_trim', 'can_zero'].map((name) => `${name}=exit 0`),
    ...names.map((name) => `${name}=${scripts[name] ?? ':'}; ${usual[name]}`),
  ]
}

const tryRun = $({ quiet: true, verbose: false, nothrow: true })

const isMounted = (path: string) => readFileSync('/proc/mounts', 'utf8').includes(` ${path} `)

export async function createFaultyDisk(options: FaultyDiskOptions): Promise<FaultyDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-faulty-'))
  const [disk, socket, log] = [join(folder, 'disk'), join(folder, 'socket'), join(folder, 'log')]
  const flag = join(folder, 'flag')
  const started: ChildProcess[] = []
  let loop: Loop | null = null
  let seenLines = 0

  function start(tool: string, argv: readonly string[]) {
    const child = spawn(tool, argv, { stdio: 'ignore' })
    started.push(child)
    return child
  }

  /** The order matters: a mount in use stays, and a loop device over a dead mount hangs. */
  async function takeDown() {
    await loop?.[Symbol.asyncDispose]()
    // Another program that looks at every disk may hold the loop device for a moment.
    for (let tries = 0; isMounted(disk) && tries < 200; tries += 1) {
      if ((await tryRun`fusermount3 -u ${disk}`).exitCode !== 0) await sleep(50)
    }
    for (const child of started.toReversed()) await end(child)
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    const argv = options.nbdkit.map((word) => word.replaceAll('{}', folder))
    const filters = options.log === true ? ['--filter=log', ...argv, `logfile=${log}`] : argv
    const server = start('nbdkit', ['-f', '--exit-with-parent', '-U', socket, ...filters])
    await until(() => existsSync(socket))
    writeFileSync(disk, '')
    start('nbdfuse', [disk, '--unix', socket])
    await until(() => statSync(disk).size > 0)
    // Without direct I/O, reads would be answered from the page cache of the file.
    loop = await createLoop({ ...options, backing: disk, directIo: true })
    return {
      device: loop.device,
      folder,
      takeRequests() {
        const lines = readFileSync(log, 'utf8').split('\n')
        const fresh = lines.slice(seenLines)
        seenLines = lines.length - 1
        return fresh.flatMap(parseRequest)
      },
      setFlag(isSet) {
        if (isSet) writeFileSync(flag, '')
        else rmSync(flag, { force: true })
      },
      reached: () => until(() => existsSync(join(folder, 'reached'))),
      vanish: () => server.kill('SIGKILL'),
      [Symbol.asyncDispose]: takeDown,
    }
  } catch (thrown) {
    await takeDown()
    throw thrown
  }
}

async function until(isDone: () => boolean) {
  for (let tries = 0; !isDone(); tries += 1) {
    if (tries > 6000) throw new Error('the disk did not come so far')
    await sleep(10)
  }
}

async function end(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** What begins, as the log filter writes it; its ends are lines of their own. */
function parseRequest(line: string): readonly DiskRequest[] {
  const match = / (Read|Write|Flush|Trim|Zero) id=\d+(?: offset=(\w+) count=(\w+))?.* \.\.\.$/.exec(
    line,
  )
  const kind = (['Read', 'Write', 'Flush', 'Trim', 'Zero'] as const).find(
    (name) => name === match?.[1],
  )
  if (match === null || kind === undefined) return []
  return [{ kind, offset: Number(match[2] ?? 0), bytes: Number(match[3] ?? 0) }]
}
