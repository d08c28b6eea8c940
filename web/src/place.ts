// Addresses of the page: "#/", "#/runs/ID", "#/knowledge?q=…". A reload comes back to the same.

import { useEffect, useState } from "react";

export interface Place {
  parts: string[];
  asked: URLSearchParams;
}

export function parsed(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decoded), asked: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // it was typed by hand
  }
}

export function link(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function asking(path: string, asked: Record<string, string>): string {
  const kept = Object.entries(asked).filter(([, value]) => value);
  const query = new URLSearchParams(kept).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

export function usePlace(): Place {
  const [hash, move] = useState(() => window.location.hash);
  useEffect(() => {
    const moved = () => move(window.location.hash);
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return parsed(hash);
}
