/** The card of the live system on the other servers of a fleet: which of them have it, and what keeps one from it. */
import type { ClusterView } from '#fleet/cluster/presence.ts'
import { isSilent } from '#fleet/cluster/rules/member.ts'
import { standingOf } from '#fleet/cluster/rules/shared-netboot.ts'
import { fillCount } from '#kit/texts/text.ts'
import { badge, card } from '#kit/web/ui/elements.ts'
import { html, type Content } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.netboot.servers
const TONES = { whole: 'done', copying: 'ready', troubled: 'needs-you' } as const

/** `view` null: a single server, or the database is away. Silent servers are not shown. */
export function renderServers(view: ClusterView | null): Content {
  const row = view?.netboot ?? null
  if (view === null || row === null) return null
  const servers = view.members
    .filter((each) => !isSilent(each))
    .map(({ name, facts: { netboot } }) => ({ name, netboot, standing: standingOf(netboot, row) }))
  const isEvery = servers.every(({ standing }) => standing === 'whole')
  return card({
    title: t.title,
    id: 'servers',
    body: isEvery
      ? html`<p>${fillCount(t.every, servers.length)}</p>`
      : html`<p>${t.some}</p>
          <ul class="rows">
            ${servers.map(
              ({ name, netboot, standing }) =>
                html`<li>
                  <span class="grow"
                    ><strong>${name}</strong
                    ><span class="small dim missing">${netboot.trouble}</span></span
                  >${badge(TONES[standing], t.states[standing])}
                </li>`,
            )}
          </ul>`,
  })
}
