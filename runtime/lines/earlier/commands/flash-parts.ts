/** The services that a flash takes, put together. */
import { createDecoders } from '../../../services/image/decoders.ts'
import { createDisks } from '../../../services/disk/disks.ts'
import { createFlashChecks, type FlashChecks } from '../../../services/flash/flash-checks.ts'
import { createImages } from '../../../services/image/images.ts'
import { createPartitionTable } from '../../../services/disk/partition-table.ts'
import type { Provisioner } from '../../../services/flash/provisioner.ts'
import { createShell } from '../../../services/host/shell.ts'
import { createSources, type Sources } from '../../../services/image/sources.ts'
import { createWriter, type Writer } from '../../../services/flash/writer.ts'
import type { ProcessEnvironment } from './session.ts'

export interface FlashDependencies {
  readonly sources: Sources
  readonly checks: FlashChecks
  /** Loaded only for a flash that provisions. */
  readonly loadProvisioner: () => Promise<Provisioner>
  readonly writer: Writer
}

export function createFlashServices({
  env,
  stdin,
}: Pick<ProcessEnvironment, 'env' | 'stdin'>): FlashDependencies {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    sources: createSources({ env, stdin }),
    checks: createFlashChecks({ images: createImages({ shell }), decoders, disks }),
    async loadProvisioner() {
      const { createProvisioner } = await import('../../../services/flash/provisioner.ts')
      return createProvisioner({ shell, env })
    },
    writer: createWriter({ shell, decoders, disks, table: createPartitionTable({ shell }) }),
  }
}
