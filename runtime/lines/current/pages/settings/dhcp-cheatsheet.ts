/** The DHCP options that make machines boot from this server, and recipes for DHCP servers. */
import type { H3Event } from 'h3'
import { renderDhcpRecipes, type DhcpRecipe } from '../../../../core/boot/dhcp.ts'
import { decideDhcpTarget } from '../../../../core/boot/dhcp-target.ts'
import { listLanAddresses } from '../../../../services/host/host-addresses.ts'
import { card, copyable, copyBlock, factList } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import type { PageContext } from '../frame/page-context.ts'

export async function renderDhcp(context: PageContext, event: H3Event): Promise<Html> {
  const { baseUrl } = context.site.contact(event)
  const target = decideDhcpTarget(baseUrl, listLanAddresses())
  const server = target?.address ?? new URL(baseUrl).hostname
  const base = target?.baseUrl ?? baseUrl
  return card({
    title: 'DHCP and network boot',
    id: 'dhcp-pxe',
    body: html`${factList([
      ['TFTP server (option 66)', copyable(server)],
      ['Boot file for BIOS (67)', copyable('undionly.kpxe')],
      ['Boot file for UEFI (67)', copyable('ipxe.efi')],
      ['UEFI HTTP boot (60 = HTTPClient, 67)', copyable(`${base}/boot/ipxe.efi`)],
      ['iPXE script', copyable(`${base}/pxe-bootstrap.ipxe`)],
    ])}${target === null ? null : renderDhcpRecipes(target).map(renderRecipe)}`,
  })
}

const renderRecipe = ({ id, title, where, note, text }: DhcpRecipe): Html =>
  html`<details id="dhcp-${id}">
    <summary>${title}</summary>
    <p class="small dim">${where}${note === null ? null : html`<br />${note}`}</p>
    ${copyBlock(text, `${title}: ${where}`)}
  </details>`
