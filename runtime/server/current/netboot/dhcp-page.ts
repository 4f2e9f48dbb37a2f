/** /ui/dhcp: the DHCP options that make machines boot from this server, and recipes for DHCP servers. */
import type { Answer } from '#kit/web/answers/answers.ts'
import {
  FIRMWARE_LOADERS,
  renderDhcpRecipes,
  scriptOf,
  UEFI_FILES,
  type DhcpRecipe,
  type FirmwareLoader,
  decideDhcpTarget,
} from '#fleet/boot/rules/dhcp.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { card, copyable, copyBlock, factList } from '#kit/web/ui/elements.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import { PROXY_PAGES, renderProxyCard } from './proxy-card.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'

/** Links of the settings lead to the card on either page. */
export const DHCP_ID = 'dhcp-pxe'
const DHCP_PATH = '/ui/dhcp'

export const DHCP_PAGES = [pageAt(DHCP_PATH, 'read', show, { reach: 'shared' }), ...PROXY_PAGES]

async function show(context: CurrentContext): Promise<Answer> {
  const found = findDhcp(context)
  const { target, loader } = found
  return await context.show({
    title: 'DHCP',
    learn: 'dhcp.html',
    body: html`${await renderProxyCard(context)}
    ${
      target === null
        ? null
        : card({
            title: 'Lines for your DHCP server',
            id: 'recipes',
            body: html`<p class="hint">
                ${'Machines find this server through the DHCP server of their network, which this server does not replace. Choose yours and copy the lines; they have the addresses of this server.'}
              </p>
              ${renderChoice(loader, 'recipes')} ${renderDhcpRecipes(target).map(renderRecipe)}`,
          })
    }
    ${card({ title: 'DHCP options', id: DHCP_ID, body: html`${target === null ? renderChoice(loader, DHCP_ID) : null} ${renderOptions(found)}` })}`,
  })
}

export function renderDhcp(context: CurrentContext): Html {
  const found = findDhcp(context)
  return html`${renderChoice(found.loader, DHCP_ID)} ${renderOptions(found)}
    <p><a href="${DHCP_PATH}">Lines for your DHCP server</a></p>`
}

/** With an address of this server that machines can reach, wherever it was opened. */
export function findDhcp(context: CurrentContext) {
  const { baseUrl } = context.contact()
  const said = context.query.get('loader')
  const loader = FIRMWARE_LOADERS.find((one) => one === said) ?? 'grub'
  const decided = decideDhcpTarget(baseUrl, listLanAddresses(), loader)
  const hasOthers = (context.site.otherServers?.(baseUrl).length ?? 0) > 0
  const target = decided === null ? null : { ...decided, hasOthers }
  const server = target?.address ?? new URL(baseUrl).hostname
  return { loader, target, server, base: target?.baseUrl ?? baseUrl, hasOthers }
}

function renderOptions({ loader, server, base, hasOthers }: ReturnType<typeof findDhcp>): Html {
  const files = UEFI_FILES[loader]
  return factList([
    ['TFTP server (option 66)', copyable(server)],
    ['Boot file for BIOS (67)', copyable('undionly.kpxe')],
    ['Boot file for UEFI, x86-64 (7, 9)', copyable(files.uefi)],
    ['Boot file for UEFI, arm64 (11)', copyable(files.arm)],
    ['UEFI HTTP boot, x86-64 (16; 60 = HTTPClient)', copyable(`${base}/boot/${files.uefi}`)],
    ['UEFI HTTP boot, arm64 (19; 60 = HTTPClient)', copyable(`${base}/boot/${files.arm}`)],
    ['iPXE script', copyable(scriptOf({ baseUrl: base, hasOthers }))],
  ])
}

const LOADERS = {
  grub: 'Signed GRUB, also with Secure Boot',
  ipxe: 'iPXE, without Secure Boot',
} as const

const renderChoice = (chosen: FirmwareLoader, anchor: string): Html =>
  html`<nav class="tabs" aria-label="What UEFI machines load">
    ${FIRMWARE_LOADERS.map(
      (loader) =>
        html`<a
          href="?loader=${loader}#${anchor}"
          ${attributes({ 'aria-current': loader === chosen ? 'true' : null })}
          >${LOADERS[loader]}</a
        >`,
    )}
  </nav>`

const renderRecipe = ({ id, title, where, note, text }: DhcpRecipe): Html =>
  html`<details id="dhcp-${id}">
    <summary>${title}</summary>
    <p class="small dim">${where}<br />${note}</p>
    ${copyBlock(text, `${title}: ${where}`)}
  </details>`
