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
import { listLanAddresses } from '#fleet/boot/host-addresses.ts'
import { card, copyable, copyBlock, factList } from '#kit/web/ui/elements.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.settings.dhcp

/** Links of the settings lead to the card on either page. */
export const DHCP_ID = 'dhcp-pxe'
const DHCP_PATH = '/ui/dhcp'

export const DHCP_PAGES = [pageAt(DHCP_PATH, 'read', show, { reach: 'shared' })]

async function show(context: CurrentContext): Promise<Answer> {
  const found = findDhcp(context)
  return await context.show({
    title: PAGES.frame.titles.dhcp,
    section: DHCP_PATH,
    body: html`${card({ title: t.title, id: DHCP_ID, body: renderOptions(found) })}
    ${
      found.target === null
        ? null
        : card({
            title: t.servers.title,
            id: 'recipes',
            body: html`<p class="hint">${t.servers.text}</p>
              ${renderDhcpRecipes(found.target).map(renderRecipe)}`,
          })
    }`,
  })
}

export const renderDhcp = (context: CurrentContext): Html =>
  html`${renderOptions(findDhcp(context))}
    <p><a href="${DHCP_PATH}">${t.servers.title}</a></p>`

function findDhcp(context: CurrentContext) {
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
  return html`${renderChoice(loader)}${factList([
    [t.server, copyable(server)],
    [t.bios, copyable('undionly.kpxe')],
    [t.uefi, copyable(files.uefi)],
    [t.arm, copyable(files.arm)],
    [t.http, copyable(`${base}/boot/${files.uefi}`)],
    [t.httpArm, copyable(`${base}/boot/${files.arm}`)],
    [t.script, copyable(scriptOf({ baseUrl: base, hasOthers }))],
  ])}`
}

const renderChoice = (chosen: FirmwareLoader): Html =>
  html`<nav class="tabs" aria-label="${t.loaders.label}">
    ${FIRMWARE_LOADERS.map(
      (loader) =>
        html`<a
          href="?loader=${loader}#dhcp-pxe"
          ${attributes({ 'aria-current': loader === chosen ? 'true' : null })}
          >${t.loaders[loader]}</a
        >`,
    )}
  </nav>`

const renderRecipe = ({ id, title, where, note, text }: DhcpRecipe): Html =>
  html`<details id="dhcp-${id}">
    <summary>${title}</summary>
    <p class="small dim">${where}<br />${note}</p>
    ${copyBlock(text, fill(t.recipe, { title, place: where }))}
  </details>`
