/** What a page has of one request: the server, the services of its line, the address, the layout, and its answers. */
import type { H3Event } from 'h3'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { ServerConfig } from '../../kit/config/config.ts'
import type { NamedTexts } from '../../kit/config/rules/setting.ts'
import { page, type Answer } from '../../kit/web/answers/answers.ts'
import { personOf, type By, type Caller } from '../../kit/web/answers/caller.ts'
import { messageOf, type Notice } from '../../kit/web/ui/form-notices.ts'
import { readPlace, type NavLink, type PageLayout, type PageView } from '../../kit/web/ui/layout.ts'
import type { Content } from '../../kit/web/ui/html.ts'
import { reachOf } from '../../kit/web/answers/rules/reach.ts'
import { fill } from '../../kit/texts/text.ts'
import { PAGES } from '../texts/texts.ts'
import { describeReach } from './seen-labels.ts'
import { IMAGES } from '../../kit/web/ui/sections.ts'
import type { Clock } from '../../kit/web/ui/times.ts'
import type { Site } from '../routes/site.ts'
import type { Contact } from '../routes/transition.ts'
import { goBack, goTo, type Refused } from './form-answer.ts'

/** What the pages of a line use beside the site; each line adds its own. */
export interface PageServices {
  readonly config: ServerConfig
  /** What pages call the settings. */
  readonly settingTexts: NamedTexts
  /** Counts the captured images that wait for a review at the cache service; absent: nobody asks there. */
  countWaiting?(): Promise<number>
}

/** A page without what the context itself adds. */
type Page = Omit<PageView, 'theme' | 'here' | 'keys' | 'alarms' | 'waiting' | 'who'>

/** Pages of both lines take it as it is; those of a line name its machines and services. */
export interface PageContext<
  M extends MachineBase = MachineBase,
  Services extends PageServices = PageServices,
> {
  readonly site: Site<M>
  readonly services: Services
  readonly event: H3Event
  readonly query: URLSearchParams
  /** The present time and the time zone of the pages. */
  clock(): Clock
  by(): By
  contact(): Contact
  /** Why the form that led here was refused, and what was typed; null: none was. */
  notice(): Notice | null
  /** The same as a banner. */
  message(): Content
  /** Answers with a page, under the message of `message()` unless the page brings its own. */
  show(view: Page): Promise<Answer>
  goTo(location: string): Answer
  /** The page says why a form was refused. */
  goBack(path: string, refused: Refused): Answer
}

/** What the contexts of all requests share. */
interface PageDependencies<M extends MachineBase, Services extends PageServices> {
  readonly site: Site<M>
  readonly services: Services
  readonly layout: PageLayout
  /** Where the navigation leads; events show the number of failures there. */
  readonly nav: readonly NavLink[]
}

/** Null: the administrator, who has no name and all rights. */
export function describeWho(caller: Caller): NonNullable<PageView['who']> | null {
  const person = personOf(caller)
  if (person === null) return null
  const reach = reachOf(person)
  const sees =
    reach === null ? null : fill(PAGES.account.session.sees, { what: describeReach(reach) })
  return { name: person.name, looks: person.role === 'look', sees }
}

/** Each of its functions looks at the site when it is called. */
export function createPageContext<M extends MachineBase, Services extends PageServices>(
  { site, services, layout, nav: all }: PageDependencies<M, Services>,
  event: H3Event,
): PageContext<M, Services> {
  const message = () => messageOf({ site }, event)
  return {
    site,
    services,
    event,
    query: event.url.searchParams,
    clock: () => ({ now: site.now(), zone: services.config.current().display.timezone }),
    by: () => site.by(event),
    contact: () => site.contact(event),
    notice: () => site.notices.read(event),
    message,
    async show(view) {
      const nav = all.filter(({ href }) => site.mayOpen(event, href))
      const hasEvents = nav.some(({ href }) => href === '/ui/events')
      const alarms = hasEvents ? await site.journal.countAlarms() : 0
      // Who may change nothing at the cache decides on none of them.
      const waiting = site.mayOpen(event, IMAGES, 'POST') ? await services.countWaiting?.() : 0
      const who = describeWho(site.caller(event))
      const text = layout.page({
        messages: message(),
        nav,
        ...view,
        ...readPlace(event),
        alarms,
        waiting: waiting ?? 0,
        who,
      })
      return page(text, 200, { vary: 'cookie' })
    },
    goTo: (location) => goTo(event, location),
    goBack: (path, refused) => goBack(site, event, path, refused),
  }
}
