/** The context of every page of this line: the site, the surroundings of the rules, and the frame. */
import type { H3Event, HTTPResponse } from 'h3'
import type { CatalogEntry } from '../../../../core/catalog/catalog.ts'
import type { Backups } from '../../../../services/backup/backups.ts'
import type { Config } from '../../../../services/config/config.ts'
import type { Templates } from '../../../../services/first-boot/templates.ts'
import type { SettingsStore } from '../../../../services/state/settings-store.ts'
import { page } from '../../../../web/http/answers.ts'
import { readPlace, type Frame, type PageView } from '../../../../web/ui/frame.ts'
import type { Site } from '../../../../web/fleet/site.ts'
import type { Clock } from '../../../../web/ui/times.ts'
import type { Machine } from '../../rules/machine.ts'
import type { SETTINGS } from '../../rules/settings.ts'
import type { Surroundings } from '../../rules/surroundings.ts'
import type { Netboot } from '../../assembly/netboot.ts'
import { viewMachine, type MachineView } from '../view/machine-view.ts'

interface Queue {
  readonly most: number
  readonly flashing: number
  readonly waiting: number
}

export interface PageDependencies {
  readonly frame: Frame
  readonly services: {
    readonly config: Config<typeof SETTINGS>
    readonly store: SettingsStore
    readonly backups: Backups
    readonly netboot: Netboot
    readonly templates: Templates
  }
  /** What the rules know about a request to this base address. */
  gather(on: { readonly baseUrl: string; readonly now: string }): Surroundings
  /** The address of the cache service that is set, or that runs beside the server; null: none. */
  cacheUrl(): string | null
  /** An IANA name. */
  zone(): string
  /** How many machines flash and wait; null: flashes are not limited. */
  queue(): Queue | null
}

/** Without what the context itself adds. */
type Page = Omit<PageView, 'theme' | 'here' | 'alarms'>

export interface PageContext extends PageDependencies {
  readonly site: Site<Machine>
  clock(): Clock
  images(): readonly CatalogEntry[]
  /** As a network boot at this moment would find it. */
  view(machine: Machine, event: H3Event): MachineView
  show(event: H3Event, view: Page, status?: number): Promise<HTTPResponse>
}

export function createPageContext(site: Site<Machine>, parts: PageDependencies): PageContext {
  const clock = () => ({ now: site.now(), zone: parts.zone() })
  return {
    ...parts,
    site,
    clock,
    images: () => site.catalog.snapshot().entries,
    view: (machine, event) =>
      viewMachine(machine, parts.gather(site.contact(event)), site.runs.findLive(machine.mac)),
    async show(event, view, status = 200) {
      const alarms = await site.journal.countAlarms()
      const text = parts.frame.page({ ...view, ...readPlace(event), alarms })
      return page(text, status, { vary: 'cookie' })
    },
  }
}
