/** The way of a person who captures a disk in the wizard, up to the question whether it shall begin. */
import { numberOf } from './wizard-fixture.ts'
import type { Terminal } from './tmux.ts'

/** What the image of a loop device is called unless another name is typed. */
export const nameOf = (device: string): string => `${device.slice('/dev/'.length)}.img.zst`

/** In one line, with one blank between words. */
export const textOf = (screen: readonly string[]): string =>
  screen.join(' ').replaceAll(/\s+/g, ' ').trim()

/** Goes from the choice of catalogs to the question where the image goes. */
export async function goToPlace(terminal: Terminal, device: string): Promise<readonly string[]> {
  await terminal.waitFor(/Where do the images come from\?|> Catalog:/)
  await terminal.press('m', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${device} [^]*> Disk:`))
  await terminal.press(numberOf(disks, device), 'Enter')
  return await terminal.waitFor('> Image:')
}

/** Enter alone takes the suggested name. */
export async function goToCapture(
  terminal: Terminal,
  device: string,
  typed = '',
): Promise<readonly string[]> {
  await goToPlace(terminal, device)
  await terminal.press(...(typed === '' ? [] : [typed]), 'Enter')
  return await terminal.waitFor(/\[y\] CAPTURE|Rejected:/)
}
