/** `docs/dhcp.md`, with its blocks as the server makes them; run as a program, it writes the file. */
import { writeFileSync } from 'node:fs'
import {
  planDhcp,
  renderDhcpRecipes,
  type DhcpRecipe,
} from '../../runtime/fleet/boot/rules/dhcp.ts'

export const DHCP_DOCUMENT = 'docs/dhcp.md'

/** The blocks name a server at 192.0.2.10, port 8080. */
export function renderDhcpDocument(): string {
  const target = planDhcp('192.0.2.10', 24, 'http://192.0.2.10:8080', 'grub')
  if (!target.ok) throw new Error(target.refusal)
  return [HEAD, ...renderDhcpRecipes(target.value).map(renderRecipe), TAIL].join('\n')
}

const HEAD = `# DHCP and network boot

<!-- Made by test/support/dhcp-document.ts; do not edit. -->

\`flasher-web\` assigns no addresses and is not a TFTP server. Your existing DHCP server tells machines
where to find it. The page **DHCP** has the blocks below with the addresses
of your server; here it is 192.0.2.10, port 8080.

## What happens

1. The firmware requests an address, and names its kind (option 93).
2. UEFI loads Debian's signed shim and GRUB, which run with Secure Boot as without it
   ([secure-boot.md](secure-boot.md)): \`shimx64.efi\` by TFTP or, by UEFI HTTP Boot,
   \`http://192.0.2.10:8080/boot/shimx64.efi\`. HTTP Boot accepts an answer only with the vendor
   class \`HTTPClient\` (option 60). A BIOS loads iPXE, \`undionly.kpxe\`, by TFTP.
3. GRUB requests what its machine boots from the server (\`/pxe/<mac>.grub\`). iPXE requests an address
   again, with the user class \`iPXE\` (option 77), and gets \`http://192.0.2.10:8080/pxe-bootstrap.ipxe\`,
   which leads to the script of its machine.

| Firmware                  | Option 93         | Gets                          | Without Secure Boot also |
| ------------------------- | ----------------- | ----------------------------- | ------------------------ |
| BIOS                      | 0                 | \`undionly.kpxe\` by TFTP       |                          |
| UEFI x86-64               | 7, 9              | \`shimx64.efi\` by TFTP         | \`ipxe.efi\`               |
| UEFI arm64                | 11                | \`shimaa64.efi\` by TFTP        | \`ipxe-arm64.efi\`         |
| UEFI HTTP Boot x86-64     | 16                | \`/boot/shimx64.efi\` by HTTP   | \`/boot/ipxe.efi\`         |
| UEFI HTTP Boot arm64      | 19                | \`/boot/shimaa64.efi\` by HTTP  | \`/boot/ipxe-arm64.efi\`   |
| iPXE, whatever it runs on | user class \`iPXE\` | \`/pxe-bootstrap.ipxe\` by HTTP |                          |

Without the last row, iPXE would load itself again and again. In every block it comes before the
others, or excludes them. For iPXE on UEFI, replace the names as in the last column, or choose it on
the page.

## The files

\`/boot/shimx64.efi\`, \`/boot/grubx64.efi\` and \`/boot/ipxe.efi\` are the newest of a fetched release, and
\`shimaa64.efi\`, \`grubaa64.efi\` and \`ipxe-arm64.efi\` those for arm64. HTTP Boot needs nothing else.
The TFTP daemon needs these files in its folder, under these names, because each names the next:

\`\`\`sh
mkdir -p /srv/tftp/grub && cd /srv/tftp
curl -fO http://192.0.2.10:8080/boot/shimx64.efi -fO http://192.0.2.10:8080/boot/grubx64.efi
curl -fo grub/grub.cfg http://192.0.2.10:8080/grub/grub.cfg
\`\`\`

For machines with a BIOS it needs \`undionly.kpxe\` (Debian: package \`ipxe\`,
\`/usr/lib/ipxe/undionly.kpxe\`), for iPXE on UEFI \`ipxe.efi\`. The Netboot page and the dashboard request
\`shimx64.efi\`, \`grubx64.efi\` and \`grub/grub.cfg\`, or \`ipxe.efi\`, from the daemon and show the result;
set \`netboot.tftp_probe_host\` if the daemon runs on another host.

An iPXE from elsewhere, from version 2.0 on, looks for \`autoexec.ipxe\` where it was loaded from.
The server has one at \`/boot/autoexec.ipxe\`; for TFTP, save that beside \`ipxe.efi\`:

\`\`\`sh
curl -o /srv/tftp/autoexec.ipxe http://192.0.2.10:8080/boot/autoexec.ipxe
\`\`\`

## Several servers

Where \`[pxe] servers\` lists the servers of a site ([pxe.md](pxe.md#several-servers)), give each of them a TFTP
daemon, with the files of above and \`autoexec.ipxe\`. Fetch \`autoexec.ipxe\` and \`grub/grub.cfg\` for each daemon from
the server beside it: they name all servers, the one that was asked first, and machines go on to the next where it does
not answer. Fetch them again when the list changes.

In every block, iPXE gets \`autoexec.ipxe\` instead of the address of \`/pxe-bootstrap.ipxe\`, which names one server
only; the page shows the blocks like this. In that of dnsmasq:

\`\`\`
dhcp-boot=tag:ipxe,autoexec.ipxe,,192.0.2.10
\`\`\`

An answer of DHCP names one TFTP server, and firmware does not look for another one. So a machine survives the loss
of a whole host where there are two that answer:

- **A proxy on each server** beside the DHCP server that assigns the addresses: the block
  [below](#dnsmasq-beside-another-dhcp-server), on each with its own address. Machines take the proxy that answers.
- **Two DHCP servers** (Kea with high availability, two dnsmasq with a range each, ISC dhcpd with failover): each
  names the server beside it.

With one DHCP server that names one TFTP server, machines survive the loss of \`flasher-web\` there, but not that of
its TFTP daemon. A name that stands for both addresses is no way out: dnsmasq takes them in turn, one at each answer, so
an offer and its confirmation may name different servers.
`

const TAIL = `## When it does not work

- **No offer at all**: DHCP stays within one network. Use a relay (\`ip helper-address\`), or a proxy in
  the network of the machine.
- **\`PXE-E16\`, or "no boot file name"**: no row matches the class of the machine; the log of the DHCP
  server shows its option 93.
- **HTTP Boot continues without a message**: the answer lacks the vendor class \`HTTPClient\`. In Kea, a
  reservation of the host replaces the options of its class, so it must have both options itself.
- **A proxy beside another DHCP server**: PXE firmware ignores \`dhcp-boot\` there, so that block has \`pxe-service\`.
- **iPXE loads iPXE**: the user class does not match; some servers require a length byte in front of it.
- **Ports**: UDP 67 and 69, UDP 4011 for a proxy, and TCP 8080 from the machines to the server.
`

const renderRecipe = ({ title, where, note, text }: DhcpRecipe): string =>
  [`## ${title}`, '', note, '', `In: ${where}`, '', '```', `${text}\`\`\``, ''].join('\n')

if (import.meta.main) writeFileSync(DHCP_DOCUMENT, renderDhcpDocument())
