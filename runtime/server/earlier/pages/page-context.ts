/** Earlier line: what its pages use beside the site. */
import type { ImageShelf } from '#engine/image/image-shelf.ts'
import type { LiveFiles } from '#fleet/boot/live-files.ts'
import type { PxeHelper } from '#fleet/boot/pxe-helper.ts'
import type { ReleaseFetches } from '#fleet/boot/releases.ts'
import type { InterfaceAddress } from '#fleet/boot/rules/pxe-activation.ts'
import type { ProvisionFiles } from '#fleet/workflow/provision-files.ts'
import type { PageContext, PageServices } from '#server/pages/page-context.ts'
import type { LineConfig } from '../assembly/configuration.ts'
import type { Workflows } from '../assembly/workflows.ts'
import type { Machine } from '../rules/machine.ts'

export interface PxeServices extends PxeHelper {
  listAddresses(): readonly InterfaceAddress[]
  port(): number
}

export interface EarlierServices extends PageServices {
  readonly config: LineConfig
  readonly shelf: ImageShelf
  readonly files: ProvisionFiles
  readonly workflows: Workflows
  readonly bootFiles: LiveFiles
  readonly releases: ReleaseFetches
  readonly pxe: PxeServices
  /** The account whose password is the operator's. */
  readonly user: string
}

export type EarlierContext = PageContext<Machine, EarlierServices>
