/** What a page has of one request: the server, the services of its line, the address, the layout, and its answers. */
import type { H3Event } from 'h3'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { ServerConfig } from '#kit/config/config.ts'
import { page, type Answer } from '#kit/web/answers/answers.ts'
import type { By } from '#kit/web/answers/caller.ts'
import { messageOf, type Notice } from '#kit/web/ui/form-notices.ts'
import { readPlace, type PageLayout, type PageView } from '#kit/web/ui/layout.ts'
import { findTab, IMAGES, listOpenSections, type Section } from '#kit/web/ui/rules/sections.ts'
import type { Content } from '#kit/web/ui/html.ts'
import { describeWho } from '#kit/web/ui/who.ts'
import type { Clock } from '#kit/web/ui/times.ts'
import type { Site } from '#server/routes/site.ts'
import type { Contact } from '#server/routes/transition.ts'
import { goBack, goTo, type Refused } from './form-answer.ts'

export interface PageServices {
  readonly config: ServerConfig
  /** Captured images that wait for a review; absent: nobody asks. */
  countWaiting?(): Promise<number>
  /** Absent: the line has no batches. */
  readonly keeper?: { countOpen(): number }
}

type Page = Omit<
  PageView,
  'theme' | 'here' | 'keys' | 'alarms' | 'waiting' | 'batches' | 'who' | 'foot' | 'section'
>

/** Pages of both lines take it as it is; each line extends it. */
export interface PageContext<
  M extends MachineBase = MachineBase,
  Services extends PageServices = PageServices,
> {
  readonly site: Site<M>
  readonly services: Services
  readonly event: H3Event
  readonly query: URLSearchParams
  clock(): Clock
  by(): By
  contact(): Contact
  /** Null: no form was refused. */
  notice(): Notice | null
  message(): Content
  /** What the side bar shows of this server. */
  readFrame(): Promise<Required<Pick<PageView, 'nav' | 'alarms' | 'batches'>>>
  /** Under the banner of `message()` unless the page has its own. */
  show(view: Page): Promise<Answer>
  goTo(location: string): Answer
  goBack(path: string, refused: Refused): Answer
}

interface PageDependencies<M extends MachineBase, Services extends PageServices> {
  readonly site: Site<M>
  readonly services: Services
  readonly layout: PageLayout
  readonly nav: readonly Section[]
  readonly foot?: ((event: H3Event) => Content) | undefined
}

/** Looks at the site at each call. */
export function createPageContext<M extends MachineBase, Services extends PageServices>(
  { site, services, layout, nav: all, foot }: PageDependencies<M, Services>,
  event: H3Event,
): PageContext<M, Services> {
  const message = () => messageOf({ site }, event)
  async function readFrame() {
    const nav = listOpenSections(all, (path) => site.mayOpen(event, path))
    const hasEvents = nav.some(({ href }) => href === '/ui/events')
    const alarms = hasEvents ? await site.journal.countAlarms() : 0
    return { nav, alarms, batches: services.keeper?.countOpen() ?? 0 }
  }
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
    readFrame,
    async show(view) {
      const frame = await readFrame()
      // Only for callers who may decide on them.
      const waiting = site.mayOpen(event, IMAGES, 'POST') ? await services.countWaiting?.() : 0
      const text = layout.page({
        messages: message(),
        section: findTab(frame.nav, event.url.pathname)?.href ?? event.url.pathname,
        ...view,
        ...readPlace(event),
        ...frame,
        waiting: waiting ?? 0,
        foot: foot?.(event),
        who: describeWho(site.caller(event)),
      })
      return page(text, 200, { vary: 'cookie' })
    },
    goTo: (location) => goTo(event, location),
    goBack: (path, refused) => goBack(site, event, path, refused),
  }
}
