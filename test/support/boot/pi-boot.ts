/** What a Raspberry Pi would start from the first partition of an image, by the documented rules of `config.txt`. */
import { execFileSync } from 'node:child_process'

/** The boards that a section of `config.txt` may name, with the device tree that each looks for. */
export const PI_BOARDS = {
  pi4: ['bcm2711-rpi-4-b.dtb', 'bcm2711-rpi-400.dtb', 'bcm2711-rpi-cm4-io.dtb'],
  pi5: ['bcm2712-rpi-5-b.dtb'],
} as const
export type PiBoard = keyof typeof PI_BOARDS

/** The firmware cuts off lines with more characters. */
const MAX_LINE = 98

/** The FAT volume at an offset of an image, read by mtools. */
export interface PiVolume {
  /** Paths with a slash before them, in the spelling of the volume. */
  readonly paths: ReadonlySet<string>
  read(path: string): Buffer
}

export function openPiVolume(image: string, offset: number): PiVolume {
  const place = `${image}@@${offset}`
  const env = { ...process.env, MTOOLS_SKIP_CHECK: '1' }
  const run = (tool: string, ...args: readonly string[]) =>
    execFileSync(tool, ['-i', place, ...args], { env, maxBuffer: 2 ** 28 })
  const listed = run('mdir', '-/', '-b', '::').toString()
  return {
    paths: new Set(
      listed
        .trim()
        .split('\n')
        .map((line) => line.replace(/^::/, '')),
    ),
    read: (path) => run('mcopy', `::${path}`, '-'),
  }
}

interface PiStart {
  readonly settings: ReadonlyMap<string, string>
  /** What the firmware starts: a kernel, or a boot loader in its place. */
  readonly kernel: Buffer
}

export interface PiBoot extends PiStart {
  readonly initrd: Buffer
  readonly commandLine: string
}

/** Throws when the board would not come so far. */
export function readPiStart(volume: PiVolume, board: PiBoard): PiStart {
  const settings = parsePiConfig(volume.read('/config.txt').toString(), board)
  const need = needFrom(volume, board)
  if (board === 'pi4') for (const name of ['start4.elf', 'fixup4.dat']) need(name)
  for (const name of PI_BOARDS[board]) need(name)
  return { settings, kernel: need(settings.get('kernel') ?? 'kernel8.img') }
}

/** The same, where the firmware starts Linux. */
export function readPiBoot(volume: PiVolume, board: PiBoard): PiBoot {
  const { settings, kernel } = readPiStart(volume, board)
  const need = needFrom(volume, board)
  const [initrd = '', place] = (settings.get('initramfs') ?? '').split(' ')
  if (place !== 'followkernel') throw new Error('the initramfs has no place in memory')
  const text = need('cmdline.txt').toString()
  const [commandLine = '', ...more] = text.trimEnd().split('\n')
  if (more.length > 0) throw new Error('cmdline.txt has more than one line')
  return { settings, kernel, initrd: need(initrd), commandLine }
}

const needFrom =
  ({ paths, read }: PiVolume, board: PiBoard) =>
  (name: string) => {
    if (!paths.has(`/${name}`)) throw new Error(`${board} looks for ${name}, which is not there`)
    return read(`/${name}`)
  }

/** The settings that count for a board: `[…]` begins a section, later lines win. */
export function parsePiConfig(text: string, board: PiBoard): ReadonlyMap<string, string> {
  let section = 'all'
  const counting = text.split('\n').filter((line) => {
    section = /^\[(.+)\]$/.exec(line)?.[1] ?? section
    const isSetting = line !== '' && !/^[#[]/.test(line)
    return isSetting && (section === 'all' || section === board)
  })
  return new Map(counting.map(parseSetting))
}

function parseSetting(line: string): readonly [string, string] {
  if (line.length > MAX_LINE) throw new Error(`this line is cut off: ${line}`)
  const [, key, value] = /^(initramfs) (.+)$/.exec(line) ?? /^(\w+)=(.*)$/.exec(line) ?? []
  if (key === undefined || value === undefined) throw new Error(`this is no setting: ${line}`)
  return [key, value]
}
