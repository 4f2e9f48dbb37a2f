/** `flasher-tui` in a real terminal, with images of its own and a loop device to write to. */
import { fileURLToPath } from 'node:url'
import { openTerminal, type Terminal, type TerminalOptions } from './tmux.ts'

export const TUI_PROGRAM = fileURLToPath(
  new URL('../../../runtime/bin/flasher-tui.mjs', import.meta.url),
)

interface TuiOptions extends TerminalOptions {
  readonly imageRoot: string
  /** The only loop device that is offered. */
  readonly disk: string
  readonly argv?: readonly string[]
}

export const openTui = ({ imageRoot, disk, argv = [], env = {}, ...more }: TuiOptions) =>
  openTerminal([process.execPath, TUI_PROGRAM, ...argv], {
    ...more,
    env: { FLASHER_IMAGE_ROOT: imageRoot, FLASHER_OFFER_LOOP: disk, ...env },
  })

/** The filter of the pane that has the keys leaves the row with this text, which is marked then. */
export async function markRow(terminal: Terminal, text: string): Promise<void> {
  await terminal.press('/', text)
  await terminal.waitFor(`/${text}_`)
  await terminal.press('Enter')
  await terminal.waitFor('[Tab] other pane')
}

/** Goes from the first screen to the question whether this disk shall be erased. */
export async function goToQuestion(terminal: Terminal, image: string, disk: string) {
  await terminal.waitFor(new RegExp(`${disk} `))
  await markRow(terminal, image)
  await terminal.press('Enter')
  await terminal.waitFor(/\[ Disks/)
  await markRow(terminal, disk)
  await terminal.press('f')
  return await terminal.waitFor(/ERASE AND FLASH|This cannot be flashed/)
}
