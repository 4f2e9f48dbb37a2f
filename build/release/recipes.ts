/** Recipes of other package managers, which fetch the Debian package of a release and trust it by its digest. */
import { ARCHS, type Arch } from '#appliance/appliance.ts'
import { debFile, RECIPES } from '#appliance/assets.ts'
import type { HashedFile } from './manifest.ts'

interface RecipeFacts {
  readonly version: string
  /** The address below which the files are published. */
  readonly url: string
  readonly files: readonly HashedFile[]
}

interface Source {
  readonly arch: Arch
  readonly url: string
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

interface Recipe {
  readonly name: string
  readonly text: string
}

const ABOUT = 'Writes disk images to disks and proves that it worked'
const LICENSE = 'Apache-2.0'
/** All of them are in the one package, with Node and all libraries. */
const PROGRAMS = ['flasher', 'flasher-tui', 'flasher-web', 'flasher-cache'] as const

/** What needs no quotes in a shell, in Ruby and in Nix. */
const PLAIN = /^https?:\/\/[\w.:/~%+-]+$/

/**
 * Renders the recipes for Arch Linux, Homebrew on Linux and Nix; none where no Debian package is among the files.
 *
 * @throws {Error} The address has characters that a recipe would have to quote.
 */
export function renderRecipes({ version, url, files }: RecipeFacts): readonly Recipe[] {
  if (!PLAIN.test(url))
    throw new Error(`recipes need an address without special characters: ${url}`)
  const sources = ARCHS.flatMap((arch) => {
    const name = debFile(arch, version)
    const file = files.find((one) => one.name === name)
    const base = url.replace(/\/+$/, '')
    return file === undefined ? [] : [{ arch, url: `${base}/${name}`, digest: file.digest }]
  })
  if (sources.length === 0) return []
  return [
    { name: RECIPES.arch, text: renderArch(version, url, sources) },
    { name: RECIPES.homebrew, text: renderHomebrew(version, url, sources) },
    { name: RECIPES.nix, text: renderNix(version, url, sources) },
  ]
}

const ARCH_NAMES: Readonly<Record<Arch, string>> = { x86_64: 'x86_64', arm64: 'aarch64' }

const renderArch = (
  version: string,
  url: string,
  sources: readonly Source[],
) => `# Arch Linux: makepkg -si
pkgname=flasher-bin
pkgver=${version.replaceAll('-', '_')}
pkgrel=1
pkgdesc='${ABOUT}'
arch=(${sources.map(({ arch }) => ARCH_NAMES[arch]).join(' ')})
url='${url}'
license=('${LICENSE}')
depends=(glibc gcc-libs util-linux)
optdepends=('qemu-img: qcow2 images' 'xz: xz images' 'zstd: captures')
provides=(flasher)
conflicts=(flasher)
options=(!strip !debug)
${sources
  .map(
    ({ arch, url: from, digest }) => `source_${ARCH_NAMES[arch]}=('${from}')
sha256sums_${ARCH_NAMES[arch]}=('${digest}')`,
  )
  .join('\n')}

package() {
  bsdtar -xf data.tar.zst -C "$pkgdir"
  for program in ${PROGRAMS.join(' ')}; do
    ln -sf ../lib/flasher/service/start "$pkgdir/usr/bin/$program"
  done
  install -Dm644 "$pkgdir/usr/share/doc/flasher/copyright" "$pkgdir/usr/share/licenses/flasher-bin/LICENSE"
}
`

const BLOCKS: Readonly<Record<Arch, string>> = { x86_64: 'intel', arm64: 'arm' }

const renderHomebrew = (
  version: string,
  url: string,
  sources: readonly Source[],
) => `# Homebrew on Linux: brew install ./flasher.rb
class Flasher < Formula
  desc "${ABOUT}"
  homepage "${url}"
  version "${version}"
  license "${LICENSE}"

  depends_on :linux
  depends_on "zstd" => :build
${sources
  .map(
    ({ arch, url: from, digest }) => `
  on_${BLOCKS[arch]} do
    url "${from}"
    sha256 "${digest}"
  end
`,
  )
  .join('')}
  def install
    deb = Dir["*.deb"].first
    system "ar", "x", deb if deb
    system "tar", "--use-compress-program=zstd", "-xf", "data.tar.zst"
    libexec.install Dir["usr/lib/flasher/*"]
    man1.install Dir["usr/share/man/man1/*"]
    %w[${PROGRAMS.join(' ')}].each do |program|
      (bin/program).write <<~SH
        #!/bin/sh
        exec "#{libexec}/node" "#{libexec}/runtime/bin/#{program}.mjs" "$@"
      SH
    end
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/flasher --version")
  end
end
`

const SYSTEMS: Readonly<Record<Arch, string>> = { x86_64: 'x86_64-linux', arm64: 'aarch64-linux' }

const renderNix = (
  version: string,
  url: string,
  sources: readonly Source[],
) => `# Nix: nix-build -E 'with import <nixpkgs> {}; callPackage ./flasher.nix {}'
{ lib, stdenv, fetchurl, autoPatchelfHook, dpkg, makeWrapper, util-linux }:

stdenv.mkDerivation rec {
  pname = "flasher";
  version = "${version}";

  src = {
${sources
  .map(
    ({ arch, url: from, digest }) => `    ${SYSTEMS[arch]} = fetchurl {
      url = "${from}";
      sha256 = "${digest}";
    };`,
  )
  .join('\n')}
  }.\${stdenv.hostPlatform.system} or (throw "flasher: no package for \${stdenv.hostPlatform.system}");

  nativeBuildInputs = [ autoPatchelfHook dpkg makeWrapper ];
  buildInputs = [ stdenv.cc.cc.lib ];
  # Node was stripped when the package was made.
  dontStrip = true;

  unpackPhase = "dpkg-deb -x $src .";

  installPhase = ''
    mkdir -p $out/lib $out/share
    cp -r usr/lib/flasher $out/lib/flasher
    cp -r usr/share/man $out/share/man
    for program in ${PROGRAMS.join(' ')}; do
      makeWrapper $out/lib/flasher/node $out/bin/$program \\
        --add-flags $out/lib/flasher/runtime/bin/$program.mjs \\
        --prefix PATH : \${lib.makeBinPath [ util-linux ]}
    done
  '';

  meta = {
    description = "${ABOUT}";
    homepage = "${url}";
    license = lib.licenses.asl20;
    platforms = [ ${sources.map(({ arch }) => `"${SYSTEMS[arch]}"`).join(' ')} ];
    mainProgram = "flasher";
  };
}
`
