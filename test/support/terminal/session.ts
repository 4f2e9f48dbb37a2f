/** `pnpm docs:session`: records the wizard in a real terminal, on a loop device, for the documentation. */
import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'
import { createShell } from '#kit/host/shell.ts'
import { makeContent } from '../disk/disk-images.ts'
import { createLoop } from '../disk/loop.ts'
import { readScreens, showScreens, writeScreens } from '../documents/screens.ts'
import { renderSvg, type ShownFrame } from './session-svg.ts'
import { EXITED, type Terminal } from './tmux.ts'
import { createWizardFixture, numberOf, type WizardFixture } from './wizard-fixture.ts'

const SIZE = { columns: 80, rows: 25 } as const
const DOCUMENTS = ['docs/wizard.md', 'docs/capture.md']
const LOOK_MS = 80
const shell = createShell({ env: process.env })

/** A network card and an image folder of its own: nobody's addresses and names are published. */
const STAGE = [
  'mount -t tmpfs tmpfs /var/lib',
  'mkdir -p "$IMAGES"',
  'mount --bind "$FLASHER_IMAGE_ROOT" "$IMAGES"',
  'export FLASHER_IMAGE_ROOT="$IMAGES"',
  'ip link add eth0 address 52:54:00:12:34:56 type veth peer name eth9',
  'ip address add 192.0.2.17/24 dev eth0',
  'ip link set eth0 up',
  'ip link set eth9 up',
].join(' && ')

interface Recording {
  readonly frames: readonly ShownFrame[]
  /** asciicast, version 2: a head and one line for each piece of output. */
  readonly cast: string
}

async function record(): Promise<Recording & { readonly captures: ReadonlyMap<string, string> }> {
  const zst = await pack(makeContent(640 * 2 ** 20))
  await using fixture = await createWizardFixture({
    'debian-13-amd64.img.zst': zst,
    'fedora-42-arm64.img.zst': zst.subarray(0, zst.length / 2),
    'openwrt-24.10-x86_64.img': makeContent(16 * 2 ** 20),
  })
  await using target = await createLoop({ megabytes: 960 })
  await prepare(target.device)
  const folder = await mkdtemp(join(tmpdir(), 'flasher-session-'))
  try {
    await using terminal = await fixture.open({
      ...SIZE,
      env: { FLASHER_OFFER_LOOP: target.device, IMAGES: DEFAULT_IMAGE_ROOT },
      within: ['unshare', '--net', '--mount', 'sh', '-c', `${STAGE} && exec "$@"`, 'sh'],
    })
    const tape = await startTape(terminal, join(folder, 'tape'))
    const captures = await walk(terminal, target.device)
    const { frames, cast } = await tape.stop()
    const more = await walkCapture(fixture)
    return { frames, cast, captures: new Map([...captures, ...more]) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function pack(content: Buffer): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-session-'))
  try {
    await writeFile(join(folder, 'image'), content)
    await shell.require(['zstd', '-q', join(folder, 'image')])
    return await readFile(join(folder, 'image.zst'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Something to lose. */
async function prepare(device: string) {
  const table = 'label: gpt\nsize=64M, type=U, name="EFI system"\ntype=L\n'
  await shell.require(['sfdisk', '--quiet', '--no-reread', device], { input: table })
  await shell.require(['partx', '--add', device])
  await shell.require(['mkfs.ext4', '-q', '-L', 'old-root', `${device}p2`])
  const geometry = ['-h', '64', '-s', '32', '-t', '64']
  await shell.require(['mformat', '-i', `${device}p1`, ...geometry, '-v', 'ESP', '::'])
}

/** The way a person takes; what each screen showed, by the screen's name. */
async function walk(terminal: Terminal, device: string): Promise<ReadonlyMap<string, string>> {
  const captures = new Map<string, string>()
  const see = async (name: string, pattern: RegExp | string) => {
    const screen = await terminal.waitFor(pattern)
    captures.set(name, screen.join('\n').trimEnd())
    await pause(1200)
    return screen
  }
  const type = async (...keys: readonly string[]) => {
    for (const key of keys) {
      await terminal.press(key)
      await pause(350)
    }
  }
  await see('image', '> Image:')
  await type('b', 'Enter')
  await see('catalog', '? Where do the images come from?')
  await type('l', 'Enter')
  await see('image again', '> Image:')
  await type('Down', 'Enter')
  const disks = await see('disk', new RegExp(`${device} .*old-root[^]*> Disk:`))
  await type(numberOf(disks, device), 'Enter')
  await see('confirm', /ERASE AND FLASH/)
  await terminal.press('y')
  await see('flash', /^ write +[1-9]\d% .* left/m)
  await see('done', '? What next?')
  await type('q', 'Enter')
  await terminal.waitFor(EXITED)
  return captures
}

/** What identifies a machine, and enough besides for the bar to be seen. */
async function fill(partition: string) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-session-'))
  await shell.require(['mount', partition, folder])
  try {
    await mkdir(join(folder, 'etc/ssh'), { recursive: true })
    await writeFile(join(folder, 'etc/machine-id'), `${'0'.repeat(32)}\n`)
    await writeFile(join(folder, 'etc/ssh/ssh_host_ed25519_key'), 'key\n')
    await writeFile(join(folder, 'data'), makeContent(640 * 2 ** 20))
  } finally {
    await shell.require(['umount', folder])
    await rm(folder, { recursive: true })
  }
}

/** What a person sees of a capture of the disk; it is not recorded. */
async function walkCapture(fixture: WizardFixture): Promise<ReadonlyMap<string, string>> {
  await using source = await createLoop({ megabytes: 960 })
  const { device } = source
  await prepare(device)
  await fill(`${device}p2`)
  const captures = new Map<string, string>()
  await using terminal = await fixture.open({
    ...SIZE,
    env: { FLASHER_OFFER_LOOP: device, IMAGES: DEFAULT_IMAGE_ROOT },
    within: ['unshare', '--net', '--mount', 'sh', '-c', `${STAGE} && exec "$@"`, 'sh'],
  })
  const see = async (name: string, pattern: RegExp | string) => {
    const screen = await terminal.waitFor(pattern)
    captures.set(name, screen.join('\n').trimEnd())
    return screen
  }
  await terminal.waitFor('> Image:')
  await terminal.press('m', 'Enter')
  const disks = await see('capture disk', new RegExp(`${device} .*old-root[^]*> Disk:`))
  await terminal.press(numberOf(disks, device), 'Enter')
  await see('capture place', '> Image:')
  await terminal.press('web-42', 'Enter')
  await see('capture confirm', '[y] CAPTURE')
  await terminal.press('y')
  await see('capture run', /^ read +[1-9]\d% .* left/m)
  await see('capture done', '? What next?')
  await terminal.press('q', 'Enter')
  await terminal.waitFor(EXITED)
  return captures
}

/** Everything that comes out of the program, and what the terminal made of it. */
async function startTape(terminal: Terminal, path: string) {
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  const pieces: string[] = []
  const frames: ShownFrame[] = []
  const stopping = new AbortController()
  await shell.require(['mkfifo', path])
  const opened = createReadStream(path, { encoding: 'utf8' })
  opened.on('data', (text) => pieces.push(JSON.stringify([round(seconds()), 'o', text])))
  await terminal.pipeTo(path)
  const watch = async () => {
    while (!stopping.signal.aborted) {
      const lines = (await terminal.painted()).split('\n')
      const text = lines.join('\n')
      const isEnd = text.includes(EXITED)
      if (!isEnd && frames.at(-1)?.lines.join('\n') !== text) {
        frames.push({ seconds: frames.length === 0 ? 0 : seconds(), lines })
      }
      await pause(LOOK_MS)
    }
  }
  // A terminal that is gone has nothing more to show; whoever waits for it reports why it ended.
  const watching = watch().catch(() => undefined)
  return {
    async stop(): Promise<Recording> {
      stopping.abort()
      await watching
      opened.destroy()
      const head = { version: 2, width: SIZE.columns, height: SIZE.rows, title: 'flasher' }
      return { frames, cast: `${[JSON.stringify(head), ...pieces].join('\n')}\n` }
    },
  }
}

const round = (seconds: number) => Math.round(seconds * 1000) / 1000

if (import.meta.main) {
  const { frames, cast, captures } = await record()
  await writeFile('docs/pictures/wizard.cast', cast)
  await writeFile('docs/pictures/wizard.svg', renderSvg(frames, { ...SIZE, pause: 4 }))
  writeScreens(new Map([...readScreens(), ...captures]))
  for (const document of DOCUMENTS) {
    await writeFile(document, showScreens(await readFile(document, 'utf8'), captures))
  }
  console.log(`recorded ${frames.length} frames and ${captures.size} screens`)
}
