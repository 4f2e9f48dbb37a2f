/** Programs of the live system that are the same in both lines, assembled for this host. */
import { LIVE_PATHS } from '../../appliance/contract.ts'
import { createMarks } from '../services/host/marks.ts'
import { createShell, type Environment } from '../services/host/shell.ts'
import { createSticks } from '../services/disk/sticks.ts'
import { openImages } from './images.ts'

/** `flasher-grow`; returns the exit code. */
export function openImagesOfHost(env: Environment): Promise<number> {
  const { bootFacts, status } = LIVE_PATHS
  const sticks = createSticks({ shell: createShell({ env }), bootFacts })
  return openImages({ sticks, say: createMarks({ status }).mark })
}
