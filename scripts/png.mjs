/**
 * Makes a screenshot small: a PNG with a palette of its 256 most frequent colours, everything else becoming the nearest of them. Pages have few
 * colours, so nothing is seen of it, and the file is a third of what the browser writes. Reads 8-bit RGB and RGBA without interlace.
 */
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

/** The same picture with a palette. */
export function withPalette(png) {
  const { width, height, channels, pixels } = decode(png);
  const counts = new Map();
  for (let i = 0; i < pixels.length; i += channels) counts.set(colourAt(pixels, i), (counts.get(colourAt(pixels, i)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const places = new Map(palette.map((colour, index) => [colour, index]));
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const colour = colourAt(pixels, (y * width + x) * channels);
      if (!places.has(colour)) places.set(colour, nearest(palette, colour));
      rows[y * (width + 1) + 1 + x] = places.get(colour);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function colourAt(pixels, i) { return (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]; }

function nearest(palette, colour) {
  const distance = (other) => ((other >> 16) - (colour >> 16)) ** 2 + (((other >> 8) & 255) - ((colour >> 8) & 255)) ** 2 + ((other & 255) - (colour & 255)) ** 2;
  let best = 0;
  for (let i = 1; i < palette.length; i += 1) if (distance(palette[i]) < distance(palette[best])) best = i;
  return best;
}

function decode(png) {
  const data = [];
  let width = 0, height = 0, channels = 0;
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const type = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (type === "IHDR") [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    if (type === "IDAT") data.push(body);
  }
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x < channels ? 0 : pixels[y * stride + x - channels];
      const up = y === 0 ? 0 : pixels[(y - 1) * stride + x];
      const corner = y === 0 || x < channels ? 0 : pixels[(y - 1) * stride + x - channels];
      pixels[y * stride + x] = raw[y * (stride + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  return { width, height, channels, pixels };
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const out = Buffer.alloc(named.length + 8);
  out.writeUInt32BE(body.length, 0);
  named.copy(out, 4);
  out.writeUInt32BE(crc32(named), named.length + 4);
  return out;
}
