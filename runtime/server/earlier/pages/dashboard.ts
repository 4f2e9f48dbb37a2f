/** /ui/dashboard: what failed first, what runs, what was flashed, and what is to be done before the first flash. */
import { printable } from '#kit/foundation/printable.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { badge, card, emptyState, progress, refreshOnNews } from '#kit/web/ui/elements.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { dayOf, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import {
  machinePath,
  MACHINES_PATH,
  renderBar,
  renderStateBadge,
} from '#server/pages/machines/machines-list.ts'
import { renderTiles } from '#server/pages/number-tiles.ts'
import { isUnassigned, type Machine } from '../rules/machine.ts'
import { BOOT_FILES } from './boot.ts'
import { nameOf, viewOf, type StatedMachine, type EarlierContext } from './machine-view.ts'

const PATH = '/ui/dashboard'
const NEEDS_ATTENTION = 'state:needs-attention,failed'
/** Per list; its link leads to the rest. */
const MAX_ROWS = 8

export const DASHBOARD_PAGE = pageAt(PATH, 'read', show, { reach: 'list' })

async function show(context: EarlierContext): Promise<Answer> {
  const { site, services } = context
  const machines = await site.machines.list()
  const [images, files] = await Promise.all([services.shelf.list(), services.bootFiles.list()])
  const find = (q: string, sort: string) =>
    site.views.match(machines, new URLSearchParams({ q, sort }))
  // What failed comes first.
  const [waiting, running] = [find(NEEDS_ATTENTION, 'state'), find('state:running', '-seen')]
  const flashed = find('-flashed:never', '-flashed')
  const clock = context.clock()
  return await context.show({
    title: 'Dashboard',
    learn: 'earlier-line.html',
    updates: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    body: html`<div class="board" ${refreshOnNews('board', PATH, 2000)}>
      ${renderTiles(
        [
          { title: 'Machines', count: machines.length, href: MACHINES_PATH },
          { title: 'Running', count: running.length, href: listPath('state:running') },
          {
            title: 'Need attention',
            count: waiting.length,
            href: listPath(NEEDS_ATTENTION),
          },
          {
            title: 'Discovered',
            count: machines.filter(isUnassigned).length,
            href: listPath('is:discovered'),
          },
          { title: 'Images', count: images.length, href: '/ui/images' },
        ].map((tile) => ({ ...tile, trend: null })),
      )}
      ${renderSetup(listSteps(machines, images.length, new Set(files.map(({ name }) => name))))}
      <div class="columns">
        <div>
          ${renderWaiting(context, waiting, machines.length)}
          ${
            running.length === 0
              ? null
              : renderRows(
                  'Running now',
                  running.map((each) => renderRunning(viewOf(context, each))),
                )
          }
        </div>
        <div>
          ${
            flashed.length === 0
              ? null
              : renderRows(
                  'Last flashed',
                  groupBy(flashed.slice(0, 50 * MAX_ROWS), ({ image, last_flashed_at: at }) => [
                    image,
                    at === null ? null : dayOf({ ...clock, now: new Date(at) }),
                  ]).map((group) => renderFlashed(clock, group)),
                )
          }
        </div>
      </div>
    </div>`,
  })
}

const listPath = (q: string): string => address(MACHINES_PATH, { q })

const renderRows = (title: string, rows: readonly Html[]): Html =>
  card({
    title,
    body: html`<ul class="rows">
      ${rows.slice(0, MAX_ROWS)}
    </ul>`,
  })

/** Machines of the same kind: one line. */
const groupBy = (
  machines: readonly Machine[],
  kindOf: (machine: Machine) => unknown,
): readonly (readonly Machine[])[] => [
  ...Map.groupBy(machines, (machine) => JSON.stringify(kindOf(machine))).values(),
]

function renderWaiting(
  context: EarlierContext,
  waiting: readonly Machine[],
  machines: number,
): Html {
  const all = html`<a class="small" href="${listPath(NEEDS_ATTENTION)}">All ${waiting.length}</a>`
  const groups = groupBy(waiting, (machine) => {
    const { view } = viewOf(context, machine)
    return [view.state, view.is]
  })
  return card({
    title: 'Needs attention',
    aside: groups.length > MAX_ROWS ? all : null,
    body:
      waiting.length === 0
        ? renderCalm(machines)
        : html`<ul class="rows">
            ${groups.slice(0, MAX_ROWS).map((group) => renderGroup(context, group))}
          </ul>`,
  })
}

const renderCalm = (machines: number): Html =>
  machines === 0
    ? emptyState('No machines yet', 'Boot one from the network and it appears here.')
    : html`<p class="dim">Nothing needs attention.</p>`

const MAX_NAMED = 4

const renderNames = (group: readonly Machine[]): Html =>
  html`${group
    .slice(0, MAX_NAMED)
    .map(
      (machine, at) =>
        html`${at === 0 ? null : ', '}<a href="${machinePath(machine.mac)}"
            ><bdi>${printable(nameOf(machine))}</bdi></a
          >`,
    )}${group.length > MAX_NAMED ? ` and ${group.length - MAX_NAMED} more` : null}`

function renderGroup(context: EarlierContext, group: readonly Machine[]): Content {
  const [first, ...others] = group
  if (first === undefined) return null
  const { view } = viewOf(context, first)
  const [seen = ''] = group
    .map(({ last_seen_at: at }) => at ?? '')
    .toSorted()
    .toReversed()
  const isNew = isUnassigned(first)
  return html`<li>
    <span class="grow"
      >${renderStateBadge(view)} ${renderNames(group)}<br /><span class="small dim"
        >${view.is}</span
      ></span
    >
    <span class="when">${renderTime(seen || null, context.clock(), 'never seen')}</span>
    ${
      others.length === 0
        ? html`<a class="button" href="${machinePath(first.mac)}"
            >${isNew ? 'Configure' : 'Open'}</a
          >`
        : html`<a class="button" href="${listPath(isNew ? 'is:discovered' : NEEDS_ATTENTION)}"
            >Show all ${group.length}</a
          >`
    }
  </li>`
}

const renderRunning = ({ machine, view, run }: StatedMachine): Html =>
  html`<li>
    <span class="grow">${renderNames([machine])}</span>${
      run === null ? progress(null, null, view.is) : renderBar(run)
    }
  </li>`

/** Of one image and day. */
const renderFlashed = (clock: Clock, group: readonly Machine[]): Html =>
  html`<li>
    <span class="grow"
      >${renderNames(group)}<br /><span class="small dim"
        ><bdi>${printable(group[0]?.image ?? '')}</bdi></span
      ></span
    >
    <span class="when">${renderTime(group[0]?.last_flashed_at ?? null, clock)}</span>
  </li>`

interface SetupStep {
  readonly isDone: boolean
  readonly texts: { readonly title: string; readonly why: string; readonly action: string }
  readonly text: string
  readonly href: string
}

const BOOT = {
  title: 'Live system',
  why: 'Machines boot it from the network to be flashed. Without it they can only boot their own disks.',
  action: 'Fetch a release',
  ready: 'All of its files are here.',
  missing: { one: '1 of its files is missing.', other: '{count} of its files are missing.' },
} as const

const IMAGES = {
  title: 'Images',
  why: 'Machines are flashed with images from the image folder.',
  action: 'Upload an image',
  ready: { one: '1 image in the folder.', other: '{count} images in the folder.' },
  missing: 'There are no images yet.',
} as const

const DHCP = {
  title: 'Network boot',
  why: 'A DHCP server must tell machines to boot from this server.',
  action: 'Set up network boot',
  ready: 'Machines find this server.',
  missing: 'No machine has booted from this server yet.',
} as const

/** In the order in which people do it. */
function listSteps(
  machines: readonly Machine[],
  images: number,
  files: ReadonlySet<string>,
): readonly SetupStep[] {
  const missing = BOOT_FILES.filter((name) => !files.has(name))
  const hasContact = machines.some(({ last_seen_at }) => last_seen_at !== null)
  return [
    {
      isDone: missing.length === 0,
      texts: BOOT,
      text: missing.length === 0 ? BOOT.ready : fillCount(BOOT.missing, missing.length),
      href: '/ui/boot',
    },
    {
      isDone: images > 0,
      texts: IMAGES,
      text: images > 0 ? fillCount(IMAGES.ready, images) : IMAGES.missing,
      href: '/ui/images',
    },
    {
      isDone: hasContact,
      texts: DHCP,
      text: hasContact ? DHCP.ready : DHCP.missing,
      href: '/ui/settings#bootstrap',
    },
  ]
}

function renderSetup(steps: readonly SetupStep[]): Content {
  const open = steps.filter(({ isDone }) => !isDone)
  if (open.length === 0) return null
  const counts = { done: steps.length - open.length, total: steps.length }
  return card({
    title: fill('Setup: {done} of {total} done', counts),
    id: 'readiness',
    body: html`<ul class="rows setup">
      ${steps.map((step) => renderStep(step, step === open[0]))}
    </ul>`,
  })
}

function renderStep({ isDone, texts, text, href }: SetupStep, isNext: boolean): Html {
  return html`<li>
    <span class="check-state"
      >${isDone ? badge('done', 'ready') : badge('needs-you', 'to do')}</span
    >
    <span class="grow"
      ><a href="${href}"><strong>${texts.title}</strong></a> ${text}${
        isDone ? null : html`<span class="why dim small">${texts.why}</span>`
      }</span
    >
    ${isDone ? null : html`<a class="button${isNext ? ' primary' : ''}" href="${href}">${texts.action}</a>`}
  </li>`
}
