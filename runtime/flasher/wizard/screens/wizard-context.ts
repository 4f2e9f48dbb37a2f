/** The context that every screen of the wizard gets. */
import type { LoadedCatalog, CatalogRefusal } from '#engine/catalog/rules/catalog-source.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { AskDependencies, Asked, Subject } from '#kit/terminal/prompt/question.ts'
import type { Flasher } from '#engine/flash/flasher.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import type { Drawing } from './header.ts'
import type { Hooks } from '#flasher/order/rules/wizard-start.ts'

export interface WizardContext extends AskDependencies {
  readonly drawing: Drawing
  /** Aborted when the program is asked to end. */
  readonly signal: AbortSignal
  readonly isRoot: boolean
  readonly env: Environment
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** The catalog of `[d] default`; null: not offered. */
  readonly defaultCatalog: string | null
  /** Refused in words; null: the machine was not booted to be flashed. */
  readonly reboot: (() => Promise<Result<null, string>>) | null
  ask(subject: Subject): Promise<Asked>
  listLocal(): Promise<readonly ImageRow[]>
  loadCatalog(source: string, signal: AbortSignal): Promise<Result<LoadedCatalog, CatalogRefusal>>
  loadHooks(): Promise<Hooks>
  loadRemote(): Promise<RemoteDependencies>
  surveyDisks(): Promise<readonly SurveyedDisk[]>
  /** Where the survey does not know what lies on the partitions. */
  fillContents(disk: SurveyedDisk): Promise<SurveyedDisk>
  /** Once, when an image or a disk is first looked at. */
  loadFlasher(): Promise<Flasher>
}
