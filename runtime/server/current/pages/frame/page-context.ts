/** The context of every page of this line: the request, the site, the surroundings of the rules, and the frame. */
import type { H3Event, HTTPResponse } from 'h3'
import type { CatalogEntry } from '../../../../engine/catalog/rules/catalog.ts'
import type { Backups } from '../../../../fleet/backup/backups.ts'
import type { Config } from '../../../../kit/config/config.ts'
import type { Templates } from '../../../../fleet/first-boot/templates.ts'
import type { SettingsStore } from '../../../../fleet/state/settings-store.ts'
import type { Mac } from '../../../../kit/net/rules/mac.ts'
import { page } from '../../../../kit/web/answers/answers.ts'
import type { By } from '../../../../kit/web/answers/caller.ts'
import { messageOf, type Notice } from '../../../../kit/web/ui/form-notices.ts'
import { readPlace, type PageLayout, type PageView } from '../../../../kit/web/ui/layout.ts'
import type { Content } from '../../../../kit/web/ui/html.ts'
import type { Site } from '../../../routes/site.ts'
import type { Contact } from '../../../routes/transition.ts'
import type { Clock } from '../../../../kit/web/ui/times.ts'
import type { Machine } from '../../rules/machine.ts'
import type { SETTINGS } from '../../rules/settings.ts'
import type { Surroundings } from '../../rules/surroundings.ts'
import type { Netboot } from '../../assembly/netboot.ts'
import { nameOf, viewMachine, type MachineView } from '../view/machine-view.ts'
import { goBack, goTo, type Refused } from './form-answer.ts'

interface Queue {
  readonly most: number
  readonly flashing: number
  readonly waiting: number
}

export interface PageDependencies {
  readonly layout: PageLayout
  readonly services: {
    readonly config: Config<typeof SETTINGS>
    readonly store: SettingsStore
    readonly backups: Backups
    readonly netboot: Netboot
    readonly templates: Templates
  }
  /** The catalog's entries; a new array when they changed. */
  images(): readonly CatalogEntry[]
  /** What the rules know about a request to this base address. */
  gather(on: { readonly baseUrl: string; readonly now: string }): Surroundings
  /** The address of the cache service that is set, or that runs beside the server; null: none. */
  cacheUrl(): string | null
  /** An IANA name. */
  zone(): string
  /** How many machines flash and wait; null: flashes are not limited. */
  queue(): Queue | null
}

/** A page without what the context itself adds. */
type Page = Omit<PageView, 'theme' | 'here' | 'alarms'>

/** What a page needs of one request. */
export interface PageContext extends PageDependencies {
  readonly site: Site<Machine>
  readonly event: H3Event
  /** The parameters of the address. */
  readonly query: URLSearchParams
  clock(): Clock
  by(): By
  contact(): Contact
  /** The name of a machine by its MAC, which a deleted one has instead. */
  nameOf(mac: Mac): string
  /** The machine as a network boot at this moment would find it. */
  view(machine: Machine): MachineView
  /** The same of a machine as an action would leave it. */
  foresee(machine: Machine): MachineView
  /** Why the form that led here was refused, and what was typed; null: none was. */
  notice(): Notice | null
  /** The same as a banner. */
  message(): Content
  show(view: Page): Promise<HTTPResponse>
  goTo(location: string): HTTPResponse
  goBack(path: string, refused: Refused): HTTPResponse
}

/** Makes the context of one request; each of its functions looks at the site when it is called. */
export function createPageContext(
  site: Site<Machine>,
  parts: PageDependencies,
  event: H3Event,
): PageContext {
  const contact = () => site.contact(event)
  return {
    ...parts,
    site,
    event,
    query: event.url.searchParams,
    clock: () => ({ now: site.now(), zone: parts.zone() }),
    by: () => site.by(event),
    contact,
    nameOf(mac) {
      const machine = site.machines.peek(mac)
      return machine === null ? mac : nameOf(machine)
    },
    view: (machine) =>
      viewMachine(machine, parts.gather(contact()), site.runs.findRunning(machine.mac)),
    foresee: (machine) => viewMachine(machine, parts.gather(contact()), null),
    notice: () => site.notices.read(event),
    message: () => messageOf({ site }, event),
    async show(view) {
      const alarms = await site.journal.countAlarms()
      const text = parts.layout.page({ ...view, ...readPlace(event), alarms })
      return page(text, 200, { vary: 'cookie' })
    },
    goTo: (location) => goTo(event, location),
    goBack: (path, refused) => goBack(site, event, path, refused),
  }
}
