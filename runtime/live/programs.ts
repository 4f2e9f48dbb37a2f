/** Programs of the live system that are the same in both lines, assembled for this host. */
import { LIVE_PATHS } from '../../appliance/contract.ts'
import { createShell, type Environment } from '../services/shell.ts'
import { createSticks } from '../services/sticks.ts'
import { openImages } from './images.ts'

/** `flasher-grow`; returns the exit code. */
export function openImagesOfHost(env: Environment, say: (line: string) => void): Promise<number> {
  const sticks = createSticks({ shell: createShell({ env }), bootFacts: LIVE_PATHS.bootFacts })
  return openImages({ sticks, say })
}
