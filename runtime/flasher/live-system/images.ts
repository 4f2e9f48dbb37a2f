/** `flasher-grow`: grows and mounts a stick with images before the wizard starts. */
import { LIVE_PATHS } from '#appliance/contract.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { chooseImagesPartition } from '#engine/disk/rules/images-partition.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { createSticks, type Sticks } from '#engine/disk/sticks.ts'
import { createMarks } from '#kit/host/marks.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'

/** Returns the exit code. */
export function openImagesOfHost(env: Environment): Promise<number> {
  const { bootFacts, status } = LIVE_PATHS
  const sticks = createSticks({ shell: createShell({ env }), bootFacts })
  return openImages({ sticks, say: createMarks({ status }).mark })
}

/** The exit code: 0 also when there is no such stick. */
export async function openImages({
  sticks,
  say,
}: {
  readonly sticks: Sticks
  /** On the screen and in the log. */
  readonly say: (line: string) => Promise<void>
}): Promise<number> {
  const place = chooseImagesPartition(await sticks.inspect())
  if (place === null) return 0
  const { node, growable } = place
  if (growable !== null) {
    try {
      const { fromBytes, toBytes, writes } = await sticks.grow(growable)
      if (writes.length > 0) {
        await say(
          `images: ${node} has grown from ${renderSize(fromBytes)} to ${renderSize(toBytes)}`,
        )
      }
    } catch (error) {
      // Still usable; the next start tries again.
      await say(`images: ${node} does not grow: ${renderError(error)}`)
    }
  }
  try {
    await sticks.mount(node)
    await say(`images: those on ${node} are offered`)
    return 0
  } catch (error) {
    await say(`images: those on ${node} cannot be read: ${renderError(error)}`)
    return 1
  }
}
