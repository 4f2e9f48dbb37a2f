/** A part of a disk as a block device of its own, whatever the disk's partition table says. */
import { constants, open } from 'node:fs/promises'
import { Fault } from '../../core/foundation/fault.ts'
import type { Range } from '../../core/image/extents.ts'
import { createHeldShell, type HeldShell } from './held-shell.ts'
import type { Shell } from '../host/shell.ts'
import type { Device } from './device.ts'

interface LoopPart extends AsyncDisposable {
  /** `/dev/loopN`. */
  readonly node: string
  /** Runs tools that keep the disk held for as long as they live. */
  readonly held: HeldShell
}

/**
 * Attached through a loop device, as the disk's own table is not there yet. It is marked to be
 * detached once nobody has it open, so that it does not outlive us, even when we are killed.
 */
export async function openLoopPart(
  shell: Shell,
  { node: disk, fd, sectorBytes }: Pick<Device, 'node' | 'fd' | 'sectorBytes'>,
  { offset, bytes }: Range,
): Promise<LoopPart> {
  const held = createHeldShell(shell, [fd])
  await using undo = new AsyncDisposableStack()
  const node = await attach(held, disk, [
    `--sector-size=${sectorBytes}`,
    `--offset=${offset}`,
    `--sizelimit=${bytes}`,
  ])
  const detach = () => held.run(['losetup', '--detach', node])
  undo.defer(async () => void (await detach()))
  const file = await open(node, constants.O_RDWR)
  // Its first opener's end would detach it: from here on it lasts as long as this file is open.
  undo.defer(() => file.close())
  await detach()
  const kept = undo.move()
  return { node, held, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

async function attach(held: HeldShell, disk: string, flags: readonly string[]): Promise<string> {
  const argv = ['losetup', '--find', '--show', ...flags, disk]
  const { exitCode, stdout, stderr } = await held.run(argv)
  const node = stdout.trim()
  if (exitCode === 0 && node.startsWith('/dev/')) return node
  throw new Fault('tool-failed', `no loop device for ${disk}: ${stderr.trim()}`)
}
