/** The services that server-driven mode takes, put together. */
import { LIVE_PATHS } from '../../../../appliance/contract.ts'
import { isBootWanted } from '../../../core/boot-entry.ts'
import { createDisks } from '../../../services/disks.ts'
import { createHardware } from '../../../services/hardware.ts'
import { createMarks, NO_MARKS } from '../../../services/marks.ts'
import { createNvram } from '../../../services/nvram.ts'
import { createPower } from '../../../services/power.ts'
import { createShell, type Environment } from '../../../services/shell.ts'
import { createHooks } from './remote-hooks.ts'
import type { RemoteParts } from './remote-box.ts'
import type { Hooks } from './start.ts'

export interface RemoteWorld {
  /** `FLASHER_LIVE=1`: the live system started us, and its console and kernel log may be written to. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  /** Node's name of the processor. */
  readonly arch: string
  /** Loop devices count as disks. */
  readonly loops: boolean
}

export function createRemoteParts({ env, signal, now, arch, loops }: RemoteWorld): RemoteParts {
  const shell = createShell({ env })
  return {
    disks: createDisks({ shell }),
    hardware: createHardware({ shell }),
    nvram: createNvram({ shell, arch }),
    power: createPower({ shell }),
    marks: env['FLASHER_LIVE'] === '1' ? createMarks({ status: LIVE_PATHS.status }) : NO_MARKS,
    env,
    signal,
    now,
    loops,
  }
}

/** For a wizard that no server drives: the firmware alone hears of its flashes, if that is wanted. */
export function createStandaloneHooks(world: RemoteWorld): Hooks {
  const registersBoot = isBootWanted(world.env['FLASHER_REGISTER_UEFI_BOOT'])
  if (!registersBoot) return {}
  const parts = createRemoteParts(world)
  return createHooks({
    ...parts,
    client: null,
    mode: 'interactive',
    registersBoot,
    disks: () => [],
    transcript: () => [],
  })
}
