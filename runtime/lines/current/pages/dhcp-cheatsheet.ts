/** What a DHCP server must say so that machines come here, for this very server. */
import type { H3Event } from 'h3'
import { card, copyable, factList } from '../../../web/elements.ts'
import type { Html } from '../../../web/html.ts'
import type { Desk } from './desk.ts'

export async function renderDhcp(desk: Desk, event: H3Event): Promise<Html> {
  const { baseUrl } = desk.site.contact(event)
  const { hostname } = new URL(baseUrl)
  return card({
    title: 'DHCP and network boot',
    id: 'dhcp-pxe',
    body: factList([
      ['TFTP server (option 66)', copyable(hostname)],
      ['Boot file of a BIOS (67)', copyable('undionly.kpxe')],
      ['Boot file of UEFI (67)', copyable('ipxe.efi')],
      ['UEFI HTTP Boot (60 = HTTPClient, 67)', copyable(`${baseUrl}/boot/ipxe.efi`)],
      ['iPXE itself', copyable(`${baseUrl}/pxe-bootstrap.ipxe`)],
    ]),
  })
}
