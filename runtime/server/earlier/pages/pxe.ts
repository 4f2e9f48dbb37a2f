/** The part of /ui/settings that makes this host a DHCP proxy for network boots, and its two posts. */
import {
  describeRefusal,
  planActivation,
  renderNetwork,
  type ActiveProxy,
} from '#fleet/boot/rules/dhcp.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Result } from '#kit/foundation/result.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { badge, banner, factList } from '#kit/web/ui/elements.ts'
import { checkField, postButton, selectField, textField } from '#kit/web/ui/fields.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { EarlierContext } from './machine-view.ts'
import { buttonAt, formAt } from '#server/pages/context-routes.ts'
import { fill } from '#kit/foundation/text.ts'

const PATH = '/ui/settings'
const HERE = `${PATH}#pxe`

export const PXE_PAGES = [
  formAt(`${PATH}/pxe-activate`, 'admin', activate),
  buttonAt(`${PATH}/pxe-deactivate`, 'admin', async (context: EarlierContext) => {
    const outcome = await context.services.pxe.deactivate()
    return answer(context, outcome, {
      kind: 'netboot.pxe.deactivated',
      summary: 'PXE proxy-DHCP was deactivated',
      details: null,
      failed: 'PXE is still active: {reason}',
    })
  }),
]

/** The part, and beside its title whether the proxy is active. */
export async function renderPxe(
  context: EarlierContext,
): Promise<{ readonly aside: Content; readonly body: Html }> {
  const { pxe } = context.services
  const active = await pxe.readActive()
  const obstacle = findObstacle(context) ?? (await pxe.findObstacle())
  return {
    aside: active === null ? null : badge('done', 'active'),
    body: html`<p>
        ${'dnsmasq on this host can tell machines what to boot, beside the DHCP server that gives them their addresses.'}
      </p>
      ${active === null ? null : renderActive(active, pxe.port())}
      ${obstacle === null ? renderForm(context, active) : html`<p class="dim">${obstacle}</p>`}`,
  }
}

function renderActive({ device, network, port }: ActiveProxy, own: number): Content {
  return html`${factList([
    ['State', badge('done', 'active')],
    ['Interface', html`<code>${printable(device)}</code>`],
    ['Subnet', html`<code>${network}</code>`],
    ['Port', port === null ? null : html`<code>${port}</code>`],
  ])}
  ${port === null || port === own ? null : banner('needs-you', `This server listens on port ${own}. Activate PXE again to use it.`)}
  ${postButton({ action: `${PATH}/pxe-deactivate`, label: 'Deactivate PXE' })}`
}

function renderForm({ services: { pxe } }: EarlierContext, active: ActiveProxy | null): Html {
  const usable = pxe.listAddresses().filter((each) => renderNetwork(each) !== null)
  if (usable.length === 0)
    return html`<p class="dim">No interface of this host has an IPv4 address.</p>`
  const devices = [...new Set(usable.map(({ device }) => device))]
  const networksOf = (name: string) =>
    usable
      .filter(({ device }) => device === name)
      .map(renderNetwork)
      .join(', ')
  return html`<form method="post" action="${PATH}/pxe-activate">
    ${selectField({
      name: 'interface',
      label: 'Interface',
      value: active?.device ?? devices[0] ?? '',
      options: devices.map((name) => ({
        value: name,
        text: `${name} (${networksOf(name)})`,
      })),
    })}
    ${textField({
      name: 'subnet',
      label: 'Subnet',
      placeholder: 'a.b.c.d or a.b.c.d/nn',
      maxLength: 18,
      mono: true,
      hint: 'Empty: the network of the interface.',
    })}
    ${checkField({
      name: 'secure_boot',
      label: 'Secure Boot',
      checked: active?.loader === 'grub',
      hint: 'UEFI machines load shimx64.efi and the signed GRUB instead of ipxe.efi. BIOS machines load iPXE as before.',
    })}
    <button class="primary">Activate PXE</button>
  </form>`
}

async function activate(context: EarlierContext, form: URLSearchParams): Promise<Answer> {
  const { pxe } = context.services
  const device = form.get('interface') ?? ''
  const port = pxe.port()
  const subnet = form.get('subnet')?.trim() || findSubnet(context, device)
  // The helper checks all of it again.
  const loader = form.has('secure_boot') ? 'grub' : 'ipxe'
  const asked = { device, subnet, port: String(port), loader } as const
  const planned = planActivation(asked, pxe.listAddresses())
  const obstacle = findObstacle(context)
  if (obstacle !== null) return context.goBack(PATH, { error: obstacle })
  if (!planned.ok)
    return context.goBack(PATH, {
      error: `PXE was not activated: ${describeRefusal(planned.refusal)}.`,
    })
  const { network, prefix } = planned.value.target
  const given = { device, subnet: `${network}/${prefix}`, port, loader } as const
  return answer(context, await pxe.activate(given), {
    kind: 'netboot.pxe.activated',
    summary: `PXE proxy-DHCP was activated on ${device}, ${given.subnet}`,
    details: given,
    failed: 'PXE was not activated: {reason}',
  })
}

const findSubnet = ({ services: { pxe } }: EarlierContext, device: string): string =>
  pxe
    .listAddresses()
    .filter((each) => each.device === device)
    .map(renderNetwork)
    .find((network) => network !== null) ?? ''

/** Why machines could not use what dnsmasq offers. */
function findObstacle({ services: { config } }: EarlierContext): string | null {
  const { host, tls_cert: certificate } = config.current().server
  if (/^(localhost|127\.|::1)/.test(host)) {
    return `This server listens on ${host} only, where machines cannot reach it.`
  }
  return certificate === ''
    ? null
    : 'This server uses HTTPS, but machines fetch their first script by HTTP.'
}

interface SaidEvent {
  readonly kind: string
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
  readonly failed: 'PXE was not activated: {reason}' | 'PXE is still active: {reason}'
}

async function answer(
  context: EarlierContext,
  outcome: Result<null, string>,
  { failed, ...note }: SaidEvent,
): Promise<Answer> {
  const { site } = context
  if (!outcome.ok)
    return context.goBack(PATH, { error: fill(failed, { reason: printable(outcome.refusal) }) })
  await site.recordAll([{ ...note, subject_kind: 'netboot' }], {
    subject_id: null,
    ...context.by(),
  })
  return seeOther(HERE)
}
