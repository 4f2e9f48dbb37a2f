/** The services that a flash takes, put together. */
import { createDecoders } from '../../../services/decoders.ts'
import { createDisks } from '../../../services/disks.ts'
import { createFlashChecks, type FlashChecks } from '../../../services/flash-checks.ts'
import { createImages } from '../../../services/images.ts'
import { createPartitionTable } from '../../../services/partition-table.ts'
import type { Provisioner } from '../../../services/provisioner.ts'
import { createShell } from '../../../services/shell.ts'
import { createSources, type Sources } from '../../../services/sources.ts'
import { createWriter, type Writer } from '../../../services/writer.ts'
import type { World } from './session.ts'

export interface FlashParts {
  readonly sources: Sources
  readonly checks: FlashChecks
  /** Loaded only for a flash that provisions. */
  readonly loadProvisioner: () => Promise<Provisioner>
  readonly writer: Writer
}

export function createFlashParts({ env, stdin }: Pick<World, 'env' | 'stdin'>): FlashParts {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    sources: createSources({ env, stdin }),
    checks: createFlashChecks({ images: createImages({ shell }), decoders, disks }),
    async loadProvisioner() {
      const { createProvisioner } = await import('../../../services/provisioner.ts')
      return createProvisioner({ shell, env })
    },
    writer: createWriter({ shell, decoders, disks, table: createPartitionTable({ shell }) }),
  }
}
