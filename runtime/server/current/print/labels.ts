/** /ui/machines/labels: labels to print and stick on machines, with a QR code that leads to the page of each. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { parseHardware } from '#engine/inventory/rules/inventory.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { emptyState } from '#kit/web/ui/elements.ts'
import { address, attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { cutPage, renderPager, readListQuery } from '#kit/web/ui/tables.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { MACHINES_PATH } from '#server/pages/machines/machines-list.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { encode } from 'uqr'

/** In modules; the label around it is white as well. */
const BORDER = 2

/** `label`: for screen readers. */
function renderQr(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: BORDER })
  const strokes = data.flatMap((row, y) => listStrokes(row).map(([x, n]) => `M${x} ${y}h${n}`))
  return html`<svg class="qr" viewBox="0 -.5 ${size} ${size}" role="img" aria-label="${label}">
    <path stroke="#000" d="${strokes.join('')}" />
  </svg>`
}

function listStrokes(row: readonly boolean[]): readonly (readonly [at: number, count: number])[] {
  const text = row.map((isDark) => (isDark ? '1' : '0')).join('')
  return [...text.matchAll(/1+/g)].map(({ index, 0: dark }) => [index, dark.length])
}

const LABELS_PATH = `${MACHINES_PATH}/labels`

/** Two sheets of A4 with 24 labels each. */
const ROWS = 48

export const PRINT_PAGES = [pageAt(LABELS_PATH, 'read', show, { reach: 'list' })]

async function show(context: CurrentContext): Promise<Answer> {
  const query = readListQuery(context.query, ['q', 'filter', 'sort'], 1000)
  const search = new URLSearchParams(query)
  if (!search.has('sort')) search.set('sort', 'name')
  const found = context.site.views.match(await context.site.machines.list(), search)
  const page = cutPage(found, context.query, ROWS)
  const rows = await Promise.all(page.rows.map((machine) => describe(context, machine)))
  return await context.show({
    title: 'Labels to print',
    count: String(found.length),
    trail: html`<a href="${address(MACHINES_PATH, query)}">Machines</a>`,
    body:
      rows.length === 0
        ? emptyState('No matching machines', 'Remove a term or clear the search.')
        : html`<p class="dim no-print">
              ${'Print this page on A4, without margins and at 100 %: 24 labels of 70 by 37 mm on a sheet.'}
              ${fillCount({ one: 'This page has 1 label.', other: 'This page has {count} labels.' }, rows.length)}
            </p>
            <ul class="sticky-labels">
              ${rows.map(renderLabel)}
            </ul>
            ${page.pages > 1 ? renderPager(LABELS_PATH, query, page) : null}`,
  })
}

interface LabelFacts {
  readonly machine: Machine
  /** Of the machine itself; null: not reported. */
  readonly serial: string | null
  readonly link: string
}

async function describe(context: CurrentContext, machine: Machine): Promise<LabelFacts> {
  const posted = await context.site.machines.findHardware(machine.mac)
  return {
    machine,
    serial: posted === null ? null : (parseHardware(posted.json)?.serial ?? null),
    link: linkTo(context.contact().baseUrl, machine),
  }
}

/** Capitals make a smaller code; a proxy's path keeps its case. */
function linkTo(baseUrl: string, { mac }: Machine): string {
  const link = `${baseUrl}/m/${mac.replaceAll(':', '')}`
  return new URL(baseUrl).pathname === '/' ? link.toUpperCase() : link
}

function renderLabel({ machine, serial, link }: LabelFacts): Html {
  const { mac, labels } = machine
  const name = nameOf(machine)
  return html`<li>
    ${renderQr(link, `The code of the page of ${name}`)}
    <div>
      <strong ${attributes({ class: name === mac ? 'mono' : null })}><bdi>${name}</bdi></strong>
      ${name === mac ? null : html`<code>${mac}</code>`}
      ${serial === null ? null : html`<span>S/N ${printable(serial)}</span>`} ${renderRack(labels)}
    </div>
  </li>`
}

const isOfRack = (label: string): boolean => /^(?:rack|slot)-/i.test(label)

/** Rack and slot first; there is room for few others. */
function renderRack(labels: readonly string[]): Content {
  const shown = [...labels.filter(isOfRack), ...labels.filter((label) => !isOfRack(label))]
  return shown.length === 0 ? null : html`<span>${shown.slice(0, 4).join(' · ')}</span>`
}
