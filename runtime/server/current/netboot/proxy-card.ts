/** The card of /ui/dhcp that switches the DHCP proxy, and shows live what it hears; its two posts. */
import { describeArch, describeClient, type HeardClient } from '#fleet/proxy/rules/hearing.ts'
import { describeRival, type ProxyReport } from '#fleet/proxy/rules/report.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { badge, banner, card, refreshEvery } from '#kit/web/ui/elements.ts'
import { checkField, hidden, postButton } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTable } from '#kit/web/ui/tables.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { buttonAt, formAt } from '#server/pages/context-routes.ts'
import { recordSettingsEvent } from '#server/pages/settings/file-posts.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

const PATH = '/ui/dhcp'
const CARD_ID = 'proxy'
const ON_PATH = `${PATH}/proxy`
const OFF_PATH = `${PATH}/proxy-off`
const HERE = `${PATH}#${CARD_ID}`

export const PROXY_PAGES = [
  formAt(ON_PATH, 'admin', turnOn),
  buttonAt(OFF_PATH, 'admin', (context: CurrentContext) => change(context, [])),
]

/** Null for those who may not switch it. */
export async function renderProxyCard(context: CurrentContext): Promise<Content> {
  const { site, event, services } = context
  if (!site.mayOpen(event, ON_PATH, 'POST')) return null
  const { proxy } = services
  const networks = proxy.wanted()
  const obstacle = proxy.findObstacle()
  const isOn = networks.length > 0
  const report = isOn ? await proxy.report() : null
  return card({
    title: 'Proxy beside your DHCP server',
    id: CARD_ID,
    aside: isOn ? renderState(report) : null,
    body: html`<p class="hint">
        ${'If you cannot change your DHCP server, this host can tell machines what to boot. The proxy answers network boots only and assigns no addresses. Your DHCP server stays as it is.'}
      </p>
      ${obstacle === null ? null : banner('needs-you', obstacle)}
      <div class="stack" ${refreshEvery('proxy-live', PATH, isOn ? 2 : null)}>
        ${isOn ? renderLive(context, report) : null}
      </div>
      ${isOn ? postButton({ action: OFF_PATH, label: 'Turn off' }) : obstacle === null ? renderForm(context) : null}`,
  })
}

const renderState = (report: ProxyReport | null): Html =>
  report?.state === 'answering' ? badge('done', 'on') : badge('needs-you', 'not answering')

function renderForm({ services }: CurrentContext): Html {
  const networks = services.proxy.listNetworks()
  const [only] = networks
  if (only === undefined)
    return html`<p class="dim">No network card of this host has an IPv4 address.</p>`
  return html`<form method="post" action="${ON_PATH}">
    ${
      networks.length === 1
        ? hidden({ network: only.name })
        : networks.map(({ name, device }, at) =>
            checkField({
              name: 'network',
              value: name,
              label: `${name} (${device})`,
              checked: at === 0,
            }),
          )
    }
    <button class="primary">
      ${networks.length === 1 ? `Turn on for ${only.name}` : 'Turn on'}
    </button>
  </form>`
}

function renderLive(context: CurrentContext, report: ProxyReport | null): Content {
  if (report === null) {
    return banner(
      'needs-you',
      fillHtml(
        'No proxy runs on this host. In a checkout, start the server with {start}. With the Debian packages and the appliances it starts within seconds; {status} shows why it does not.',
        {
          start: html`<code>npx pnpm start --proxy</code>`,
          status: html`<code>systemctl status flasher-proxy.path flasher-proxy</code>`,
        },
      ),
    )
  }
  const { state, why, networks, left, missing, tftpBy, restarts } = report
  return html`${why === null ? null : banner(state === 'failed' ? 'failed' : 'needs-you', why)}
    ${missing.map(({ file, advice }) => banner('needs-you', `${file} is missing. ${advice}`))}
    <ul class="rows">
      ${networks.map(renderNetwork)}
      ${left.map(({ name, why: reason }) => html`<li><code>${name}</code> <span class="grow dim">${reason}</span></li>`)}
      ${tftpBy === null ? null : html`<li class="dim">Boot loaders come from ${tftpBy} on this host.</li>`}
      ${restarts === 0 ? null : html`<li class="dim">${fillCount(RESTARTS, restarts)}</li>`}
    </ul>
    ${renderClients(context, report)}`
}

const RESTARTS = {
  one: 'dnsmasq was started again once.',
  other: 'dnsmasq was started again {count} times.',
}

function renderNetwork({ name, device, answers, trouble }: ProxyReport['networks'][number]): Html {
  const servers = answers?.filter(({ assigns }) => assigns) ?? []
  const rival = describeRival({ answers })
  const words =
    trouble !== null
      ? `Other DHCP servers could not be asked: ${trouble}`
      : answers === null
        ? 'Looking for other DHCP servers.'
        : servers.length === 0
          ? 'No DHCP server answered our question. One that serves known machines only, or a firewall, may be the reason.'
          : fill('{servers} assigns addresses.', {
              servers: servers.map(({ by }) => by).join(', '),
            })
  return html`<li>
    <span><code>${name}</code> (${device})</span>
    <span class="grow">
      ${words}${rival === null ? null : html` <strong>Note: ${rival}. Some firmware may boot that instead.</strong>`}
    </span>
  </li>`
}

function renderClients(context: CurrentContext, { clients, networks }: ProxyReport): Html {
  if (clients.length === 0)
    return html`<p class="dim">
      ${fill('No machine has asked yet. Turn one on and boot it from the network. Firewalls must let UDP ports 67, 69 and 4011 and TCP port {port} in to this host.', { port: String(context.services.config.current().server.port) })}
    </p>`
  const rival = networks.map(describeRival).find((one) => one !== null) ?? null
  return renderTable({
    caption: 'Machines that asked',
    columns: ['Machine', 'Firmware', 'Asked', 'What happened'],
    rows: clients.toReversed().map((client) => renderClient(context, client, rival)),
  })
}

function renderClient(context: CurrentContext, client: HeardClient, rival: string | null): Html {
  const { site } = context
  const clock = context.clock()
  const mac = parseMac(client.mac)
  const machine = mac.ok ? site.machines.peek(mac.value) : null
  const story = describeClient(client, {
    scriptAt: machine?.last_seen_at ?? null,
    now: clock.now,
    rival,
  })
  return html`<tr>
    <td>
      ${machine === null ? html`<code>${client.mac}</code>` : html`<a href="${machinePath(machine.mac)}">${context.nameOf(machine.mac)}</a>`}
    </td>
    <td>${describeArch(client)}</td>
    <td>${renderTime(client.askedAt, clock)}</td>
    <td>${badge(story.tone, WORDS[story.tone])} ${story.text}</td>
  </tr>`
}

const WORDS = { done: 'booted', ready: 'waiting', 'needs-you': 'stuck' } as const

async function turnOn(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const networks = form.getAll('network').slice(0, 16)
  if (networks.length === 0)
    return context.goBack(HERE, { error: 'Select a network.', anchor: CARD_ID })
  const obstacle = context.services.proxy.findObstacle()
  if (obstacle !== null) return context.goBack(PATH, { error: obstacle, anchor: CARD_ID })
  return change(context, networks)
}

async function change(context: CurrentContext, networks: readonly string[]): Promise<Answer> {
  const saved = await context.services.proxy.change(networks)
  if (!saved.ok) return context.goBack(PATH, { error: saved.refusal.error, anchor: CARD_ID })
  const summary =
    networks.length === 0
      ? 'The DHCP proxy was turned off'
      : `The DHCP proxy was turned on for ${networks.join(', ')}`
  await recordSettingsEvent(context, 'settings.proxy.updated', summary, saved.value)
  return context.goTo(HERE)
}
