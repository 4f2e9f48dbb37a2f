/** A wizard in a real terminal, with images of its own and a loop device to write to. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeContent } from '../disk/disk-images.ts'
import { FLASHER } from './flasher.ts'
import { createLoop, type LoopOptions } from '../disk/loop.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './tmux.ts'

const MIB = 1024 * 1024

export interface WizardOptions extends TerminalOptions {
  readonly argv?: readonly string[]
  /** Words of a command that starts the wizard in a environment of its own. */
  readonly within?: readonly string[]
}

export interface WizardFixture extends AsyncDisposable {
  readonly folder: string
  readonly imageRoot: string
  /** The content of `debian-13-amd64.img`. */
  readonly content: Buffer
  open(options?: WizardOptions): Promise<Terminal>
}

/** `images`: names and contents; one image of 8 MiB where none are named. */
export async function createWizardFixture(
  images?: Readonly<Record<string, Buffer | string>>,
): Promise<WizardFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-wizard-'))
  const imageRoot = join(folder, 'images')
  const content = makeContent(8 * MIB)
  await mkdir(imageRoot)
  const files = Object.entries(images ?? { 'debian-13-amd64.img': content })
  await Promise.all(files.map(([name, bytes]) => writeFile(join(imageRoot, name), bytes)))
  return {
    folder,
    imageRoot,
    content,
    open: ({ argv = [], env = {}, within = [], ...more } = {}) =>
      openTerminal([...within, process.execPath, FLASHER, ...argv], {
        ...more,
        env: {
          FLASHER_IMAGE_ROOT: imageRoot,
          FLASHER_OFFER_LOOP: '1',
          FLASHER_DEFAULT_CATALOG: '',
          ...env,
        },
      }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

export const createTarget = (options: LoopOptions = { megabytes: 32 }) => createLoop(options)

/** The number under which a list shows the row that holds this text. */
export function numberOf(screen: readonly string[], text: string): string {
  const row = screen.find((line) => / \d+ {2}/.test(line) && `${line} `.includes(`${text} `))
  const number = /^ [ >-] +(\d+) {2}/.exec(row ?? '')?.[1]
  if (number === undefined) throw new Error(`no row with ${text} in:\n${screen.join('\n')}`)
  return number
}

/** Goes from the images to the question whether this disk shall be erased. */
export async function goToConfirm(terminal: Terminal, image: string, disk: string) {
  const images = await terminal.waitFor(new RegExp(`${image} [^]*> Image:`))
  await terminal.press(numberOf(images, image), 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${disk} [^]*> Disk:`))
  await terminal.press(numberOf(disks, disk), 'Enter')
  return terminal.waitFor(/ERASE AND FLASH|Rejected:/)
}
