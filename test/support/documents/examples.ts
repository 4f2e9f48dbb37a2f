/** The names that all examples of the documentation use, so that readers meet the same machines and files everywhere. */

/**
 * None is right or wrong by itself; a page that has another one is refused. No two differ in one digit only
 * (`test/figures.test.ts`), so that a wrong digit is seen.
 */
export const EXAMPLES: readonly string[] = [
  // Servers and caches, as machines and people reach them.
  '127.0.0.1:8080',
  '192.0.2.10 192.0.2.10:8080 192.0.2.27:8080',
  '192.168.1.20 192.168.1.20:8080 192.168.1.31:8080',
  '10.0.0.1 10.0.0.1:8080 flasher.lan:8080 host:8080',
  'cache.example.org:8081 cache.example:8081',
  '10.1.0.5:8081 10.1.0.38:8081 10.77.0.7:8081 10.1.0.0 10.77.0.0',
  '10.1.0.0/24 10.77.0.0/24 10.20.0.0/16 127.0.0.0/8 0.0.0.0 0.0.0.0/0 127.0.0.1',
  'flasher-1 s3.lab.example eu-1 127.0.0.1:5000',
  // Machines, what they have, and what switches them on.
  'aa:bb:cc:dd:ee:01 aa-bb-cc-dd-ee-01 aa:bb:cc:dd:ee:12 52:54:00:12:34:56',
  's5gxnx0t123456 s5gx s4ewnx0n123456 nvme0n1 rack1 label:rack1 db-3 test-machine-1 rack-12 rack.12 rack_12',
  '10.20.0.0 10.20.0.11 10.20.0.25 pdu-1/7 outlets/7 disk1 seen:<1h',
  // Images, runs, tokens and passwords.
  'debian-13.img.zst debian.qcow2 server.qcow2 web-42.img.zst ubuntu-24.04.img.xz img.lz4 debian:13 lab:v1 web:v1 catalog:v1',
  '3f2c1e9a-0001 try-00000001 f5f3172dff40 GK31c2f218a2e44f485b94239e a1b2 5c1d 7k2m-w9ce-hj4t-x3rp-b6dn id_ed25519.pub v1.2.3 flasher_1_4_0_20261126t101112z',
  // Times.
  '2026-11-01T00:00:00Z 2027-01-01T00:00:00Z 2026-11-21T08-16-15Z 2026-11-21T03-00-00Z',
  '2026-11-21T08:08:40.001Z 2026-11-21T08:10:03.120Z 2026-11-21T08:10:51.902Z 2026-11-21T08:18:00.514Z',
]
