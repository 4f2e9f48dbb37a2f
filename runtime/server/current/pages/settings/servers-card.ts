/** The card of the servers that share a database: who leads, how far each one is, and what differs. */
import type { ClusterView } from '#fleet/cluster/presence.ts'
import {
  countBehind,
  isSilent,
  listDifferences,
  type MemberRow,
} from '#fleet/cluster/rules/member.ts'
import { standingOf } from '#fleet/cluster/rules/shared-netboot.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { badge, card, factList, tag } from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTable } from '#kit/web/ui/tables.ts'
import { renderAge, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.settings.servers

/** `view` null: the database does not answer. */
export function renderServers(view: ClusterView | null, clock: Clock): Html {
  const differences = view === null ? [] : listDifferences(view.members)
  return card({
    title: t.title,
    id: 'servers',
    aside:
      view === null
        ? badge('needs-you', t.unknown)
        : badge('done', fillCount(t.count, view.members.length)),
    body: view === null ? html`<p>${t.unanswered}</p>` : renderView(view, differences, clock),
  })
}

const renderView = (
  view: ClusterView,
  differences: ReturnType<typeof listDifferences>,
  clock: Clock,
): Html =>
  html`${renderTable({
    caption: t.title,
    columns: [t.server, t.release, t.changes, t.netboot, t.seen, t.backups],
    rows: view.members.map((member) => renderMember(view, member, clock)),
  })}
  ${factList([
    [t.leads, renderLeads(view, clock)],
    [t.survives, view.survivesHost ? t.survivesYes : warn(t.survivesNo)],
    [t.secrets, view.secrets === 'shared' ? t.shared : warn(SECRETS[view.secrets])],
    [t.differences, differences.length === 0 ? t.noDifferences : null],
  ])}
  ${differences.length === 0 ? null : renderDifferences(differences)}`

const SECRETS = { own: t.own, unreadable: t.unreadable } as const

const warn = (text: string): Html => html`<span class="warning">${text}</span>`

/** Only the leader shows pages, so this server leads. */
const renderLeads = ({ lease }: ClusterView, clock: Clock): Content =>
  lease.holder === ''
    ? warn(t.nobody)
    : html`<strong>${lease.holder}</strong>, ${t.since} ${renderTime(lease.since, clock)}`

function renderMember(
  { ownId, lease, netboot }: ClusterView,
  member: MemberRow,
  clock: Clock,
): Html {
  const { id, name, url, release, silentSeconds, facts } = member
  const seen = new Date(clock.now.getTime() - silentSeconds * 1000)
  return html`<tr>
    <td>
      ${url === '' ? name : html`<a href="${url}">${name}</a>`}
      ${id === ownId ? tag(t.answers) : null}
    </td>
    <td data-label="${t.release}">${release}</td>
    <td data-label="${t.changes}">${renderBehind(member, lease.seq)}</td>
    <td data-label="${t.netboot}">${renderNetboot(netboot, facts.netboot)}</td>
    <td data-label="${t.seen}">${isSilent(member) ? warn(renderAge(seen, clock.now)) : t.now}</td>
    <td data-label="${t.backups}"><span class="small">${facts.backups}</span></td>
  </tr>`
}

function renderNetboot(row: ClusterView['netboot'], fact: MemberRow['facts']['netboot']): Content {
  if (row === null) return t.none
  const standing = standingOf(fact, row)
  const text = fill(t.netbootStates[standing], { trouble: fact.trouble })
  return standing === 'troubled' ? warn(text) : text
}

function renderBehind(member: MemberRow, newest: number): Content {
  const behind = countBehind(member, newest)
  if (behind === null) return t.none
  return behind === 0 ? t.all : fillCount(t.behind, behind)
}

const renderDifferences = (differences: ReturnType<typeof listDifferences>): Html =>
  html`<p class="warning">${t.differ}</p>
    ${renderTable({
      caption: t.differences,
      columns: [t.setting, t.values],
      rows: differences.map(
        ({ name, values }) =>
          html`<tr>
            <td><code>${name}</code></td>
            <td data-label="${t.values}">
              ${values.map(({ server, value }) => html`<div>${fill(t.value, { server, value: value || t.unset })}</div>`)}
            </td>
          </tr>`,
      ),
    })}`
