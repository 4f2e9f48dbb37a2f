/** /ui/machines/{mac}/timeline: everything that happened to a machine, newest first, page by page. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { EventCondition } from '#fleet/state/event-rows.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { card } from '#kit/web/ui/elements.ts'
import { address, attributes, fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { renderOlder } from '#kit/web/ui/search.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { readEventWords } from '../view/event-words.ts'
import { nameOf } from '../view/machine-view.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderTimeline, timelinePath } from './timeline-list.ts'

const t = PAGES.machine.timeline

const ROWS = 100

export const TIMELINE_PAGE = pageAt('/ui/machines/:mac/timeline', show)

type View = keyof typeof t.views

const VIEWS: Readonly<Record<View, EventCondition>> = {
  all: {},
  boots: {
    kinds: ['netboot.*', 'machine.discovered', 'machine.inventory', 'machine.first_boot.*'],
  },
  flashes: { kinds: ['machine.flash*', 'machine.captur*', 'machine.boot*', 'machine.run*'] },
  people: { byPeople: true },
  power: { kinds: ['machine.power.*'] },
}
const NAMES: readonly View[] = ['all', 'boots', 'flashes', 'people', 'power']

async function show(context: CurrentContext): Promise<Answer> {
  const mac = readMac(context.event)
  const machine = await context.site.machines.find(mac)
  if (machine === null) {
    throw refuse(404, fill(PAGES.machine.page.missing, { mac }), {
      hint: PAGES.machine.page.missingHint,
    })
  }
  const view = NAMES.find((name) => name === context.query.get('view')) ?? 'all'
  const before = readBefore(context.query)
  const events = await context.site.journal.list({
    ...VIEWS[view],
    subject_kind: 'machine',
    subject_id: mac,
    before_id: before,
    limit: ROWS,
  })
  const next = events.length === ROWS ? events.at(-1) : undefined
  const name = nameOf(machine)
  return await context.show({
    title: fill(t.title, { name }),
    heading: fillHtml(t.title, {
      name: html`<a href="${machinePath(mac)}"><bdi>${name}</bdi></a>`,
    }),
    section: '/ui/machines',
    trail: html`<a href="/ui/machines">${PAGES.frame.titles.machines}</a> /
      <a href="${machinePath(mac)}">${mac}</a>`,
    actions: html`<a class="button" href="${address('/ui/events', { subject_id: mac })}"
      >${t.events}</a
    >`,
    body: html`${renderViews(mac, view)}
    ${card({ body: renderTimeline(events, context.clock(), readEventWords(context)) })}
    ${renderOlder({
      path: timelinePath(mac),
      query: view === 'all' ? {} : { view },
      shown: events.length,
      isNewest: before === undefined,
      next: next === undefined ? null : { before_id: next.id },
    })}`,
  })
}

/** Undefined: the newest page. */
function readBefore(query: URLSearchParams): number | undefined {
  const text = /^\d{1,15}$/.exec(query.get('before_id') ?? '')?.[0]
  return text === undefined ? undefined : Number(text)
}

const renderViews = (mac: Mac, shown: View): Html =>
  html`<div class="tools">
    <nav class="views" aria-label="${PAGES.frame.search.views}">
      ${NAMES.map(
        (name) =>
          html`<a
            href="${address(timelinePath(mac), { view: name === 'all' ? null : name })}"
            ${attributes({ 'aria-current': name === shown ? 'true' : null })}
            >${t.views[name]}</a
          >`,
      )}
    </nav>
  </div>`
